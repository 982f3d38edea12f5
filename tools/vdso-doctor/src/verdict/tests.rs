//! The verdict on machines other than this one, which `cases.toml` describes.

use serde_json::{Map, Value};
use vdso_time::{Cause, ClockId};

use super::verdict;
use crate::call::Call;
use crate::platform::{CLOCK_SOURCES, ClockSource, Platform, Supervisor};
use crate::proof::tests::measurement;
use crate::proof::{Check, Measurement};
use crate::report::wrapped;

const CASES: &str = include_str!("cases.toml");

/// The keys that are allowed in a case. `cases` is one of them, because a case starts as a copy of
/// its group, and each group has this key.
const KEYS: &str = "architecture boot cause coarse cpu found kernel new omits precise reads report says \
                    sources supervisor cases";

/// Returns measurements in which `precise` is the result for the reads of the clock source, and
/// `coarse` the result for the coarse clocks.
fn measurements(precise: &str, coarse: &str) -> Vec<Measurement> {
    let clocks = [ClockId::MONOTONIC_COARSE, ClockId::REALTIME_COARSE].map(Call::ClockGettime);
    let cheap = clocks
        .into_iter()
        .chain([Call::Time])
        .map(|read| measurement(read, coarse));
    let usual = Call::USUAL.into_iter().chain([Call::Gettimeofday]);
    usual
        .map(|read| measurement(read, precise))
        .chain(cheap)
        .collect()
}

/// Returns the call that is named by a function, or by a clock's name or number.
fn named(name: &str) -> Call {
    match name {
        "time" => Call::Time,
        "getcpu" => Call::Getcpu,
        clock => Call::ClockGettime(
            clock
                .parse()
                .map_or_else(|_| clock.parse().unwrap(), ClockId::from_raw),
        ),
    }
}

/// Makes a platform with these clock sources, of which the first is in use. `cpu` can contain the
/// words `steady` (an invariant counter) and `virtual` (a virtual machine).
fn platform(sources: &str, cpu: &str) -> Platform {
    let available: Vec<String> = sources.split_whitespace().map(String::from).collect();
    Platform {
        kernel: "6.12.0".into(),
        architecture: "x86_64",
        supervisor: None,
        clock_source: ClockSource {
            current: available.first().cloned(),
            available,
        },
        command_line: String::new(),
        has_steady_tsc: cpu.contains("steady"),
        is_virtual: cpu.contains("virtual"),
        is_new: false,
    }
}

/// A case of `cases.toml`. It inherits the keys of its group that it does not set.
struct Case(Map<String, Value>);

impl Case {
    /// Returns the texts of a key: all elements of a list, or the one text, or the default.
    fn each<'a>(&'a self, key: &str, usual: &'a str) -> Vec<&'a str> {
        match self.0.get(key) {
            None => vec![usual],
            Some(Value::Array(all)) => all.iter().map(|text| text.as_str().unwrap()).collect(),
            Some(one) => vec![one.as_str().unwrap()],
        }
    }

    fn text<'a>(&'a self, key: &str, usual: &'a str) -> &'a str {
        self.each(key, usual)[0]
    }

    fn platform(&self, sources: &str, cpu: &str) -> Platform {
        let supervisors = [
            Supervisor::Valgrind,
            Supervisor::Emulator,
            Supervisor::GuestKernel,
        ];
        let supervisor = self.text("supervisor", "");
        Platform {
            kernel: self.text("kernel", "6.12.0").into(),
            architecture: self.text("architecture", "x86_64").to_owned().leak(),
            supervisor: supervisors
                .into_iter()
                .find(|known| known.word() == supervisor),
            command_line: format!("quiet {} ro", self.text("boot", "")),
            is_new: self.0.get("new").is_some_and(|new| new.as_bool().unwrap()),
            ..platform(sources, cpu)
        }
    }

    /// Asserts that the verdict has the cause of this case, and that its sentence contains each
    /// text of `says` and no text of `omits`.
    fn judge(&self, platform: &Platform, precise: &str) {
        let mut seen = measurements(precise, self.text("coarse", "user space"));
        for (name, found) in self
            .0
            .get("found")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            seen.retain(|measurement| measurement.call != named(name));
            seen.push(measurement(named(name), found.as_str().unwrap()));
        }
        let about = self
            .0
            .get("reads")
            .map(|_| self.each("reads", "").into_iter().map(named).collect());
        let about: Vec<Call> = about.unwrap_or(Call::USUAL.to_vec());
        let source = platform.clock_source.current.as_deref().unwrap_or_default();
        let unproved = Some("seccomp is denied".into());
        let seen = Check {
            measurements: seen,
            unproved,
            ..Check::default()
        };
        let (cause, sentence) = verdict(platform, &seen, &about);
        assert_eq!(cause.name(), self.text("cause", ""), "{sentence}");
        for (key, is_expected) in [("says", true), ("omits", false)] {
            for words in self
                .0
                .get(key)
                .into_iter()
                .flat_map(|words| words.as_array().unwrap())
            {
                let words = words.as_str().unwrap().replace("SOURCE", source);
                assert_eq!(
                    sentence.contains(&words),
                    is_expected,
                    "{words} in: {sentence}"
                );
            }
        }
        let is_one_line = !sentence.contains("  ") && !sentence.contains('\n');
        assert!(sentence.ends_with('.') && is_one_line, "{sentence:?}");
        assert!(
            wrapped("", &sentence)
                .lines()
                .all(|line| line.chars().count() <= 80),
            "{sentence}"
        );
    }
}

#[test]
fn the_verdict_on_each_machine_has_its_cause_and_its_advice() {
    let groups: Map<String, Value> = basic_toml::from_str(CASES).unwrap();
    for (promise, group) in &groups {
        for own in group["cases"].as_array().unwrap() {
            println!("{promise}: {own}");
            let mut case = Case(group.as_object().unwrap().clone());
            case.0.extend(own.as_object().unwrap().clone());
            assert!(
                case.0
                    .keys()
                    .all(|key| KEYS.split(' ').any(|known| known == key)),
                "a key is unknown"
            );
            for sources in case.each("sources", "") {
                for cpu in case.each("cpu", "") {
                    let platform = case.platform(sources, cpu);
                    for precise in case.each("precise", "kernel") {
                        case.judge(&platform, precise);
                    }
                }
            }
        }
    }
}

#[test]
fn a_trapped_counter_is_slow() {
    let mut seen = Check::default();
    let tsc = platform("tsc", "");
    seen.measurements = measurements("user space", "user space");
    for (ns, cause, words) in [
        (
            94.0,
            "slow",
            &["CLOCK_MONOTONIC", "hypervisor", "time()"][..],
        ),
        (19.0, "fine", &["nothing to do"]),
    ] {
        (seen.measurements[1].ns, seen.measurements[1].syscall_ns) = (Some(ns), Some(100.0));
        let (found, sentence) = verdict(&tsc, &seen, &Call::USUAL);
        assert_eq!(found.name(), cause, "{sentence}");
        assert!(
            words.iter().all(|word| sentence.contains(word)),
            "{sentence}"
        );
    }
}

#[test]
fn the_report_names_the_invariant_bit_under_kvm_clock_and_nowhere_else() {
    for (cpu, source, ends_with) in [
        (
            "steady virtual",
            "kvm-clock",
            "may read it; the CPU reports an invariant counter",
        ),
        (
            "virtual",
            "kvm-clock",
            "does not report an invariant counter (vdso-time-counter needs trust_hypervisor())",
        ),
        ("steady virtual", "tsc", "the vDSO can read it"),
        ("virtual", "hpet", "only the kernel can read it"),
    ] {
        let text = platform(source, cpu).described_source();
        assert!(
            text.starts_with(source) && text.ends_with(ends_with),
            "{text}"
        );
    }
}

/// Compares `CLOCK_SOURCES`, the doctor's list of clock sources, with the lists in vdso-time.
#[test]
fn a_clock_source_that_is_named_as_better_is_one_for_vdso_time_as_well() {
    for (name, ..) in CLOCK_SOURCES {
        let platform = platform(&format!("hpet {name}"), "");
        let check = Check {
            measurements: measurements("kernel", "user space"),
            ..Check::default()
        };
        let (cause, sentence) = verdict(&platform, &check, &Call::USUAL);
        let is_better = cause == Cause::ClockSource;
        let command = format!("`echo {name} |");
        assert_eq!(sentence.contains(&command), is_better, "{sentence}");
    }
}
