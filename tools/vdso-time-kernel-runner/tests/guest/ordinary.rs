//! The tests of an ordinary crate: what they need of a machine. tests/guest.rs runs them in a
//! guest.

use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn tcp_connects_on_the_loopback_interface() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = thread::spawn(move || {
        TcpStream::connect(address)
            .unwrap()
            .write_all(b"hi")
            .unwrap();
    });
    let mut text = String::new();
    listener
        .accept()
        .unwrap()
        .0
        .read_to_string(&mut text)
        .unwrap();
    client.join().unwrap();
    assert_eq!(text, "hi");
}

#[test]
fn udp_arrives_on_the_loopback_interface() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender
        .send_to(b"x", receiver.local_addr().unwrap())
        .unwrap();
    assert_eq!(receiver.recv(&mut [0; 4]).unwrap(), 1);
}

#[test]
fn ipv6_has_a_loopback_address() {
    TcpListener::bind("[::1]:0").unwrap();
}

#[test]
fn localhost_has_an_address() {
    assert!(("localhost", 80).to_socket_addrs().unwrap().count() > 0);
}

#[test]
fn a_unix_socket_is_bound_in_the_temporary_directory() {
    let path = env::temp_dir().join("socket");
    UnixListener::bind(&path).unwrap();
    fs::remove_file(path).unwrap();
}

#[test]
fn the_program_of_the_package_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_ordinary"))
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"the program\n");
}

#[test]
fn the_program_of_the_package_is_beside_the_tests() {
    let tests = env::current_exe().unwrap();
    let directory = tests.parent().unwrap().parent().unwrap();
    assert!(directory.join("unnamed").is_file());
}

#[test]
fn a_shell_and_the_usual_commands_run() {
    let command = Command::new("sh").args(["-c", "echo a | tr a b"]).output();
    assert_eq!(command.unwrap().stdout, b"b\n");
    assert!(Command::new("env").env_clear().status().unwrap().success());
}

#[test]
fn a_script_runs() {
    assert!(
        Command::new("./fixtures/script.sh")
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn home_and_path_are_set() {
    assert!(Path::new(&env::var("HOME").unwrap()).is_dir());
    assert!(env::var("PATH").unwrap().contains("/bin"));
}

#[test]
fn devices_are_there() {
    fs::File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut [0; 8])
        .unwrap();
    fs::write("/dev/null", "x").unwrap();
    fs::File::open("/dev/zero").unwrap();
}

#[test]
fn a_pseudo_terminal_opens() {
    fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/ptmx")
        .unwrap();
    assert!(fs::read_dir("/dev/pts").unwrap().count() > 0);
}

#[test]
fn shared_memory_is_writable() {
    fs::write("/dev/shm/file", "x").unwrap();
    fs::remove_file("/dev/shm/file").unwrap();
}

#[test]
fn the_standard_streams_have_names() {
    for path in ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/1"] {
        fs::metadata(path).unwrap();
    }
}

#[test]
fn a_link_is_a_link() {
    let link = Path::new(PACKAGE).join("fixtures/link.txt");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("plain.txt"));
    assert_eq!(fs::read_to_string(link).unwrap(), "plain\n");
}

#[test]
fn a_link_leads_out_of_the_package() {
    assert_eq!(fs::read_to_string("fixtures/licence").unwrap(), "licence\n");
}

#[test]
fn dot_files_and_directories_are_there() {
    assert!(fs::exists("fixtures/.dot.txt").unwrap());
    assert!(fs::exists("fixtures/.hidden/file.txt").unwrap());
}

#[test]
fn an_empty_directory_is_there() {
    assert_eq!(fs::read_dir("fixtures/empty").unwrap().count(), 0);
}

#[test]
fn a_directory_with_the_name_target_is_there() {
    assert!(fs::exists("fixtures/target/inner.txt").unwrap());
    assert!(
        !fs::exists("target/CACHEDIR.TAG").unwrap(),
        "cargo built it"
    );
}

#[test]
fn a_large_file_is_there() {
    assert_eq!(fs::metadata("fixtures/large").unwrap().len(), 3 << 20);
}

#[test]
fn a_name_has_spaces_and_accents() {
    assert!(fs::exists("fixtures/with space é.txt").unwrap());
}

#[test]
fn a_file_keeps_its_mode_and_its_time() {
    let metadata = fs::metadata("fixtures/plain.txt").unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    let time = UNIX_EPOCH + Duration::from_secs(1_234_567_890);
    assert_eq!(metadata.modified().unwrap(), time);
}

#[test]
fn a_file_beside_the_package_is_there() {
    assert_eq!(
        fs::read_to_string("../beside/file.txt").unwrap(),
        "beside\n"
    );
}

#[test]
fn a_test_writes_into_the_package() {
    fs::write("fixtures/new.txt", "x").unwrap();
    fs::remove_file("fixtures/new.txt").unwrap();
}

#[test]
#[ignore = "it never ends"]
fn hangs() {
    loop {
        thread::park();
    }
}

#[test]
#[ignore = "it uses all memory"]
fn uses_all_memory() {
    let mut blocks = Vec::new();
    loop {
        blocks.push(vec![1_u8; 64 << 20]);
    }
}
