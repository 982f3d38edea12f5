//! [`Need`]: what a test needs of its machine, and where CI has it.

use std::env;

/// A file of CI that sets `VDSO_TIME_TEST_REQUIRES`, and its word there for all that it has.
/// Without such a word it has the need's own, because only some of its machines have that.
#[derive(Clone, Copy, Debug)]
pub struct Place(pub &'static str, Option<&'static str>);

const RUN: Place = Place(".ci/run", None);
const JOBS: Place = Place(".github/workflows/ci.yml", None);
const GUESTS: Place = Place("xtask/src/machines.rs", None);
/// `.ci/run`, which installs the programs.
const CI: Place = Place(RUN.0, Some("ci"));
/// The same as root: the job `root`, and `.ci/run` on a machine that is root's.
const ROOT: Place = Place(JOBS.0, Some("ci-root"));
/// The job `root`, on a machine that has booted its own systemd.
const BOOTED: Place = Place(JOBS.0, Some("ci-booted"));
/// A machine with a kernel of its own, in `.ci/run` and each week in the job `matrix`.
const GUEST: Place = Place(GUESTS.0, Some("guest"));
const X86_GUEST: Place = Place(GUESTS.0, Some("x86-guest"));

impl Place {
    /// Returns the word there that requires a need.
    pub fn word(self, need: Need) -> &'static str {
        self.1.unwrap_or(need.word())
    }
}

macro_rules! needs {
    ($($places:tt: $($(#[$doc:meta])* $Need:ident $word:literal),+;)+) => {
        /// What a test needs of its machine. A program has its name as its word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Need { $($($(#[$doc])* $Need,)+)+ }

        impl Need {
            pub const ALL: &[Self] = &[$($(Self::$Need,)+)+];

            /// Returns the word in `VDSO_TIME_TEST_REQUIRES`.
            pub const fn word(self) -> &'static str {
                match self { $($(Self::$Need => $word,)+)+ }
            }

            /// Returns where CI has it.
            pub const fn places(self) -> &'static [Place] {
                match self { $($(Self::$Need => &$places,)+)+ }
            }
        }
    };
}

// Each place, with what is there.
needs! {
    [CI]:
        AptConfig "apt-config", AptGet "apt-get", Bfd "ld.bfd", Cc "cc", Clang "clang", Cmake "cmake",
        CPlusPlus "g++", DpkgDeb "dpkg-deb", Gcc "gcc", GccI686 "i686-linux-gnu-gcc", Go "go", Gpg "gpg",
        Id "/usr/bin/id", Lld "ld.lld", Make "make", MuslGcc "musl-gcc", PkgConfig "pkg-config",
        Python "python3", Readelf "readelf", Sh "sh", Valgrind "valgrind", Xz "xz",
        /// With prometheus_client.
        Prometheus "/usr/bin/python3",
        /// A module of python3.
        Zig "ziglang",
        /// Rust for this machine.
        Compiler "compiler",
        /// libc's system calls have tables for a backtrace.
        Backtrace "backtrace",
        /// prctl(2) may change the auxiliary vector in /proc.
        Auxv "auxv",
        /// It is known where the clock source is read.
        ClockSource "clocksource",
        /// Programs can be started.
        Exec "exec",
        /// x86's trap flag sends a signal.
        TrapFlag "trap-flag",
        /// `PR_SET_TSC`.
        TscDenial "tsc",
        Mremap "mremap", Proc "proc", Threads10000 "threads", UserNamespace "userns";
    [CI, GUEST]: Affinity "affinity", Seccomp "seccomp";
    [ROOT]:
        Cgroup2 "cgroup2", Chroot "chroot", Unshare "unshare",
        /// Another user, and namespaces without a user namespace.
        SuperUser "root",
        /// A file system that heeds the bit.
        Setuid "setuid";
    [ROOT, X86_GUEST]: TimeNamespace "timens";
    [BOOTED]: SystemdAnalyze "systemd-analyze";
    // The kernel's clock may be set.
    [GUEST]: OwnClock "own-clock";
    // The clock source may be changed.
    [X86_GUEST]: ClockSourceSwitch "clocksource-switch";
    // It is after January 2038; FEAT_ECV of aarch64.
    [GUESTS]: Year2040 "2040", Ecv "ecv";
    [JOBS, RUN]: Perf "perf";
    [RUN]:
        /// The counter clock reads the counter.
        Counter "counter",
        /// Rust's standard library for other architectures.
        Foreign "foreign";
}

impl Need {
    /// Returns whether `VDSO_TIME_TEST_REQUIRES` names it, or a place of it.
    pub fn is_required(self) -> bool {
        let required = env::var("VDSO_TIME_TEST_REQUIRES").unwrap_or_default();
        let names = |word: &str| {
            let mut all = Self::ALL.iter().flat_map(|need| need.words());
            assert!(
                all.any(|known| known == word),
                "no need and no place is called {word}"
            );
            self.words().any(|own| own == word)
        };
        // Counts, so that each word is checked: `any` would stop before a wrong one.
        required
            .split_whitespace()
            .filter(|word| names(word))
            .count()
            > 0
    }

    /// Returns the words that require it.
    fn words(self) -> impl Iterator<Item = &'static str> {
        let places = self.places().iter().map(move |place| place.word(self));
        places.chain([self.word()])
    }
}
