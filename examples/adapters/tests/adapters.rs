//! Compares the times that the adapters print with GNU date's, and the adapters with the page that
//! shows them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};
use governor::clock::Clock;
use governor::nanos::Nanos;
use log4rs::encode::Encode as _;
use log4rs::encode::writer::simple::SimpleWriter;
use time::OffsetDateTime;
use vdso_time::{ClockId, syscall};
use vdso_time_adapters::governor_clock::{CounterClock, MonotonicClock};
use vdso_time_adapters::tracing_timer::CoarseTime;
use vdso_time_adapters::{dates, log4rs_encoder};

/// Returns what GNU date prints for milliseconds since the Epoch.
fn date(millis: i64) -> String {
    let (sign, distance) = (if millis < 0 { "-" } else { "" }, millis.unsigned_abs());
    let at = format!("--date=@{sign}{}.{:03}", distance / 1000, distance % 1000);
    let output = Command::new("date").args(["--utc", &at, "+%Y-%m-%dT%H:%M:%S.%3NZ"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_end().into()
}

fn jiff(time: SystemTime) -> String {
    format!("{:.3}", jiff::Timestamp::try_from(time).unwrap())
}

fn chrono(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn time(time: SystemTime) -> String {
    OffsetDateTime::from(time).format(dates::MILLISECONDS).unwrap()
}

#[test]
fn all_libraries_print_three_digits_before_1970_and_beside_a_leap_second() {
    // 2016-12-31T23:59:60 was a leap second. Unix time has none: its next second is 1483228800.
    for millis in [
        0,
        1,
        -1,
        -250,
        -86_400_000,
        951_782_400_999,
        1_483_228_799_999,
        1_483_228_800_000,
        4_102_444_800_100,
    ] {
        let distance = Duration::from_millis(i64::unsigned_abs(millis));
        let at = if millis < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance };
        let expected = date(millis);
        assert_eq!(
            [jiff(at), chrono(at), time(at)],
            [expected.clone(), expected.clone(), expected],
            "{millis}"
        );
    }
}

/// Fails unless the time at the start of the line is the kernel's, to the tick of the coarse clock.
fn is_now(line: &str) {
    let word = line.split(' ').next().unwrap();
    assert_eq!((word.len(), &word[19..20], &word[23..]), (24, ".", "Z"), "{line}");
    let time: jiff::Timestamp = word.parse().unwrap();
    let (low, high) = (time.as_second() - 60, time.as_second() + 60);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
    assert!((low..high).contains(&now), "{line}");
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_start_with_the_time() {
    let lines = Lines::default();
    let writer = lines.clone();
    let fmt = tracing_subscriber::fmt().with_timer(CoarseTime).with_ansi(false);
    let subscriber = fmt.with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || tracing::info!("by tracing"));
    let record = log::Record::builder().args(format_args!("by log4rs")).build();
    log4rs_encoder::CoarseTime.encode(&mut SimpleWriter(lines.clone()), &record).unwrap();
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let found: Vec<&str> = text.lines().collect();
    assert!(
        found.len() == 2 && found[0].ends_with("by tracing") && found[1].ends_with("by log4rs"),
        "{text}"
    );
    found.into_iter().for_each(is_now);
    is_now(&format!("{:.3}", dates::jiff_now().unwrap()));
    is_now(&dates::chrono_now().to_rfc3339_opts(SecondsFormat::Millis, true));
    is_now(&dates::time_now().format(dates::MILLISECONDS).unwrap());
}

#[test]
fn the_limiters_clocks_are_the_kernels_monotonic_clock() {
    fn check(clock: &impl Clock<Instant = Nanos>, error: u64) {
        let kernel = || {
            let now = syscall::clock_gettime(ClockId::MONOTONIC).unwrap();
            u64::try_from(now.as_nanos()).unwrap()
        };
        let (before, now, after) = (kernel(), clock.now().as_u64(), kernel());
        assert!((before - error..=after + error).contains(&now), "{before} {now} {after}");
    }
    check(&MonotonicClock, 0);
    // The error of the counter's clock.
    check(&CounterClock, 100_000);
}

/// Removes indentation and empty lines, so that a page can show a part of a function.
fn lines_of(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn code_on_the_page_is_code_of_this_package() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["src", "examples"].map(|folder| fs::read_dir(package.join(folder)).unwrap());
    let code = files.into_iter().flatten().filter_map(|file| fs::read_to_string(file.unwrap().path()).ok());
    let code: Vec<String> = code.map(|code| lines_of(&code)).collect();
    let page = fs::read_to_string(package.join("../../docs/LOGGING.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 5, "{blocks:?}");
    for block in blocks {
        assert!(code.iter().any(|code| code.contains(&lines_of(block))), "not in the package:\n{block}");
    }
}
