//! How busy the machine was while a bench ran.
//!
//! Even the fastest batch of a busy machine can take half or twice as long as on an idle one: other
//! programs change the CPU's frequency, share its caches, or run on its other thread.

use std::fs;

use super::machine;

/// The CPUs that others may use. The daemons of an idle machine use less than a tenth of it.
const MOST: f64 = 0.1;

/// The CPU times at the start of a run.
pub struct Load([String; 2]);

impl Load {
    /// Begins the measurement.
    pub fn start() -> Self {
        Self(
            ["/proc/stat", "/proc/self/stat"]
                .map(|path| fs::read_to_string(path).unwrap_or_default()),
        )
    }

    /// Returns what others used since the start, if it was much. Nothing is known in an emulator,
    /// whose files are those of another system.
    pub fn others(&self) -> Option<String> {
        if machine::is_emulated() {
            None
        } else {
            others(&self.0, &Self::start().0)
        }
    }
}

/// Compares the texts at the start and at the end of a run.
fn others(start: &[String; 2], end: &[String; 2]) -> Option<String> {
    let (start, end) = (ticks(start)?, ticks(end)?);
    let [all, used, stolen, own] = [0, 1, 2, 3].map(|at| end[at] - start[at]);
    let cpus = end[4];
    // Each of the counts is rounded.
    let others = (used - own - 2.0).max(0.0) / all * cpus;
    let stolen = stolen / all * cpus;
    (others + stolen > MOST).then(|| {
        format!(
            "others used {others:.1} of {cpus} CPUs, the hypervisor {stolen:.1}: on an idle machine \
             figures can be half or double"
        )
    })
}

/// Returns the ticks since boot: all, those in use, those that the hypervisor gave to others, and
/// those of this process and its children; and the number of CPUs.
fn ticks([machine, own]: &[String; 2]) -> Option<[f64; 5]> {
    let numbers = |text: &str| -> Vec<f64> {
        text.split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect()
    };
    let cpus = machine
        .lines()
        .filter(|line| line.starts_with("cpu"))
        .count() as f64
        - 1.0;
    // The ticks of guests, which follow, are among those of programs.
    let [program, nice, system, idle, wait, interrupts, soft, stolen] =
        *numbers(machine.lines().next()?).first_chunk()?;
    let used = program + nice + system + interrupts + soft;
    // Before it is the name of the program, which can have spaces and numbers.
    let own = numbers(own.rsplit_once(')')?.1);
    let own = own.get(10..14)?.iter().sum();
    Some([used + idle + wait + stolen, used, stolen, own, cpus])
}

#[cfg(test)]
mod tests {
    use super::{Load, others, ticks};

    /// Returns the texts of a machine with two CPUs, with these ticks since its boot.
    fn texts([user, idle, stolen, own]: [u32; 4]) -> [String; 2] {
        let cpus =
            format!("cpu  {user} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 1 2\ncpu1 3 4\nintr 5\n");
        [
            cpus,
            format!("7 (a (1 2) b) R 1 7 7 0 -1 4194304 8 9 0 0 {own} 0 0 0 20 0 1 0 33\n"),
        ]
    }

    #[test]
    fn a_busy_machine_is_reported_and_an_idle_one_is_not() {
        let start = [1000, 2000, 30, 4];
        for (passed, report) in [
            // Of two CPUs and 100 s, this process uses 100 s.
            ([10_000, 10_000, 0, 10_000], None),
            ([10_300, 9_700, 0, 10_000], None),
            (
                [12_002, 7_998, 0, 10_000],
                Some("others used 0.2 of 2 CPUs, the hypervisor 0.0"),
            ),
            (
                [20_000, 0, 0, 10_000],
                Some("others used 1.0 of 2 CPUs, the hypervisor 0.0"),
            ),
            (
                [10_000, 5_000, 5_000, 10_000],
                Some("others used 0.0 of 2 CPUs, the hypervisor 0.5"),
            ),
            // A run of a tenth of a second, in which a daemon had a tick.
            ([11, 9, 0, 10], None),
            ([0; 4], None),
        ] {
            let end = [0, 1, 2, 3].map(|at| start[at] + passed[at]);
            let text = others(&texts(start), &texts(end)).unwrap_or_default();
            assert!(
                text.starts_with(report.unwrap_or_default()) && text.is_empty() == report.is_none(),
                "{text}"
            );
        }
        assert!(others(&texts(start), &["cpu".into(), String::new()]).is_none());
    }

    #[test]
    fn this_machine_counts_its_cpus_and_this_process() {
        let [all, used, _, own, cpus] = ticks(&Load::start().0).expect("Linux has these files");
        assert!(
            all > used && used >= own && cpus >= 1.0,
            "{all} {used} {own} {cpus}"
        );
    }
}
