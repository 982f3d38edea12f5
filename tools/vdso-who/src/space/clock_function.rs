//! The functions between a program and the vDSO.

use super::{Frame, VDSO};

/// Files of libc and of the dynamic loader.
const LIBC: &str = "libc.so libc-2. libc.musl ld-linux ld-musl ld-2. libpthread librt";

/// Functions of libc, as in a static program, without leading underscores.
const IN_LIBC: &str = "clock clock_getres clock_gettime clock_gettime64 ftime getcpu gettimeofday \
                       gettimeofday64 sched_getcpu time time64 timespec_get";

const IN_GO: &str = "runtime.nanotime runtime.nanotime1 runtime.time_now runtime.time_runtimeNano \
                     runtime.time_runtimeNow runtime.walltime runtime.walltime1 time.Now time.Since \
                     time.Until time.now time.runtimeNano time.runtimeNow";

/// Rust's std, C++'s chrono, the JVM, and this project's library.
const BEGINNINGS: &str = "JVM_CurrentTimeMillis JVM_NanoTime os::elapsed_ os::javaTime \
                          std::chrono::_V2::high_resolution_clock::now \
                          std::chrono::_V2::steady_clock::now std::chrono::_V2::system_clock::now \
                          std::sys::pal::unix::time:: std::sys::time:: std::time::Instant \
                          std::time::SystemTime vdso_time::";

/// Whether a caller of the clock is only on the way to it.
pub(super) fn is_clock_function(frame: &Frame) -> bool {
    let Frame { function, module, .. } = frame;
    let begins = |text: &str, list: &str| list.split(' ').any(|word| text.starts_with(word));
    let is_in = |text: &str, list: &str| list.split(' ').any(|word| text == word);
    // The symbols of the JVM's clock functions are not exported, and Debian strips the others.
    let is_jvm = module == "libjvm.so" && function.starts_with("libjvm.so+");
    module == VDSO
        || module == "[vsyscall]"
        || begins(module, LIBC)
        || is_jvm
        || is_in(function.trim_start_matches('_'), IN_LIBC)
        || is_in(function.split(".abi").next().unwrap_or_default(), IN_GO)
        // `<std::time::Instant>::now`
        || begins(function.trim_start_matches('<'), BEGINNINGS)
}
