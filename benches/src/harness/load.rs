//! How busy the machine was while a bench ran.
//!
//! Even the fastest batch on a busy machine can take half or twice as long as on an idle one: other
//! programs change the CPU's frequency, share its caches, or run on its other thread.

use std::fs;

use super::machine;

/// The CPUs that others may use. The daemons of an idle machine use less than a tenth of it.
const MOST: f64 = 0.1;

/// The CPU times at the start of a run: the texts of /proc/stat and /proc/self/stat.
pub struct Load {
    machine: String,
    process: String,
}

/// The CPU times since boot, in ticks.
#[derive(Debug)]
struct Ticks {
    all: f64,
    used: f64,
    /// Time that the hypervisor gave to others.
    stolen: f64,
    /// Time that this process and its children used.
    own: f64,
    cpus: f64,
}

impl Load {
    /// Begins the measurement.
    pub fn start() -> Self {
        Self {
            machine: fs::read_to_string("/proc/stat").unwrap_or_default(),
            process: fs::read_to_string("/proc/self/stat").unwrap_or_default(),
        }
    }

    /// Returns how much others used since the start, if it was much. In an emulator nothing is
    /// known, because /proc shows another system.
    pub fn others(&self) -> Option<String> {
        if machine::is_emulated() {
            return None;
        }
        self.others_until(&Self::start())
    }

    fn others_until(&self, end: &Self) -> Option<String> {
        let start = self.ticks()?;
        let end = end.ticks()?;
        let all = end.all - start.all;
        let used = end.used - start.used;
        let own = end.own - start.own;
        let stolen = end.stolen - start.stolen;
        let cpus = end.cpus;
        // Each of the counts is rounded.
        let others = (used - own - 2.0).max(0.0) / all * cpus;
        let stolen = stolen / all * cpus;
        // An interval without a tick gives no number.
        if (others + stolen).is_nan() || others + stolen <= MOST {
            return None;
        }
        Some(format!(
            "others used {others:.1} of {cpus} CPUs, the hypervisor {stolen:.1}: on an idle machine \
             figures can be half or double"
        ))
    }

    fn ticks(&self) -> Option<Ticks> {
        let lines = self.machine.lines();
        let cpus = lines.filter(|line| line.starts_with("cpu")).count();
        // The ticks of guests, which follow, are included in the ticks of programs.
        let all = numbers(self.machine.lines().next()?);
        let [program, nice, system, idle, wait, interrupts, soft, stolen] = *all.first_chunk()?;
        let used = program + nice + system + interrupts + soft;
        // The program's name precedes these fields, and can contain spaces and numbers.
        let (_, after_name) = self.process.rsplit_once(')')?;
        let own = numbers(after_name);
        Some(Ticks {
            all: used + idle + wait + stolen,
            used,
            stolen,
            own: own.get(10..14)?.iter().sum(),
            // The first line has the sum of all CPUs.
            cpus: cpus as f64 - 1.0,
        })
    }
}

/// Returns the numbers among the words of a text.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::Load;

    /// Ticks since the boot of a machine with two CPUs.
    #[derive(Clone, Copy)]
    struct Passed {
        user: u32,
        idle: u32,
        stolen: u32,
        own: u32,
    }

    fn load(ticks: Passed) -> Load {
        let Passed {
            user,
            idle,
            stolen,
            own,
        } = ticks;
        let cpus =
            format!("cpu  {user} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 1 2\ncpu1 3 4\nintr 5\n");
        Load {
            machine: cpus,
            process: format!(
                "7 (a (1 2) b) R 1 7 7 0 -1 4194304 8 9 0 0 {own} 0 0 0 20 0 1 0 33\n"
            ),
        }
    }

    #[test]
    fn a_busy_machine_is_reported_and_an_idle_one_is_not() {
        let start = load(Passed {
            user: 1000,
            idle: 2000,
            stolen: 30,
            own: 4,
        });
        for (user, idle, stolen, own, report) in [
            // Of two CPUs and 100 s, this process uses 100 s.
            (10_000, 10_000, 0, 10_000, None),
            (10_300, 9_700, 0, 10_000, None),
            (
                12_002,
                7_998,
                0,
                10_000,
                Some("others used 0.2 of 2 CPUs, the hypervisor 0.0"),
            ),
            (
                20_000,
                0,
                0,
                10_000,
                Some("others used 1.0 of 2 CPUs, the hypervisor 0.0"),
            ),
            (
                10_000,
                5_000,
                5_000,
                10_000,
                Some("others used 0.0 of 2 CPUs, the hypervisor 0.5"),
            ),
            // A run of a tenth of a second, in which a daemon had a tick.
            (11, 9, 0, 10, None),
            (0, 0, 0, 0, None),
        ] {
            let end = load(Passed {
                user: 1000 + user,
                idle: 2000 + idle,
                stolen: 30 + stolen,
                own: 4 + own,
            });
            let text = start.others_until(&end);
            let begin = text.as_deref().and_then(|text| text.split(": ").next());
            assert_eq!(begin, report);
        }
        let unreadable = Load {
            machine: "cpu".into(),
            process: String::new(),
        };
        assert!(start.others_until(&unreadable).is_none());
    }

    #[test]
    fn this_machine_counts_its_cpus_and_this_process() {
        let ticks = Load::start().ticks().expect("Linux has these files");
        assert!(ticks.all > ticks.used, "{ticks:?}");
        assert!(ticks.used >= ticks.own, "{ticks:?}");
        assert!(ticks.cpus >= 1.0, "{ticks:?}");
    }
}
