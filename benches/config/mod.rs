//! How criterion's benches of this package measure.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::Criterion;

#[cfg(not(feature = "counter-time"))]
pub(crate) use criterion::measurement::WallTime as Timer;
#[cfg(feature = "counter-time")]
pub(crate) use vdso_time_criterion::CounterTime as Timer;

pub(crate) fn timer() -> Timer {
    #[cfg(not(feature = "counter-time"))]
    return Timer;
    #[cfg(feature = "counter-time")]
    Timer::new().expect("the kernel's clock source is not the counter")
}

/// criterion with the options of the command line. The whole run takes some minutes; in an emulator
/// it takes less than one.
pub(crate) fn criterion() -> Criterion<Timer> {
    let criterion = Criterion::default().output_directory(&reports()).with_measurement(timer());
    let criterion = if vdso_time_benches::harness::machine::is_emulated() {
        // The analysis is emulated, too.
        let criterion = criterion.without_plots().nresamples(1000).sample_size(20);
        criterion.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300))
    } else {
        criterion.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2))
    };
    criterion.configure_from_args()
}

/// The folder that criterion's documentation names.
pub(crate) fn reports() -> PathBuf {
    let default = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion");
    env::var_os("CRITERION_HOME").map_or_else(default, PathBuf::from)
}
