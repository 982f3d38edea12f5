//! A health endpoint, which answers `curl -i localhost:8080`. It checks the clock at each request,
//! because the clock source can change while a server runs.

use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use vdso_doctor::{Call, Location, check};

fn main() -> io::Result<()> {
    let address = env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".into());
    for stream in TcpListener::bind(address)?.incoming() {
        if let Err(error) = stream.and_then(answer) {
            eprintln!("{error}");
        }
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    let request = BufReader::new(stream.try_clone()?).lines();
    request
        .take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty()))
        .for_each(drop);
    let (status, text) = match check(&Call::USUAL) {
        Ok(()) => ("200 OK", "clock reads stay in user space".into()),
        Err(finding) if finding.location == Location::Kernel => {
            ("503 Service Unavailable", finding.message)
        }
        Err(finding) => ("200 OK", finding.message),
    };
    let length = text.len() + 1;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}\n"
    )
}
