//! [`Need`]: what a test needs of its machine, and where CI has it.

use std::env;

/// A place of CI that has what tests need. Its word in `VDSO_TIME_TEST_REQUIRES` requires
/// everything that the place has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `.ci/run`, which installs the programs.
    Ci,
    /// The same as root: the job `root`, and `.ci/run` on a machine that is root's.
    Root,
    /// The job `root`, on a machine that has booted its own systemd.
    Booted,
    /// A machine with a kernel of its own, in `.ci/run` and each week in the job `matrix`.
    Guest,
    /// Such a machine of x86.
    X86Guest,
    /// A file that puts the word of the need itself into the variable, because only some machines
    /// have it.
    Named(&'static str),
}

use Place::{Booted, Ci, Guest, Named, Root, X86Guest};

const RUN: &str = ".ci/run";
const JOBS: &str = ".github/workflows/ci.yml";
const GUESTS: &str = "xtask/src/machines.rs";

impl Place {
    /// Returns the file that requires it, and its word in the variable.
    pub fn listed(self, need: Need) -> (&'static str, &'static str) {
        match self {
            Ci => (RUN, "ci"),
            Root => (JOBS, "ci-root"),
            Booted => (JOBS, "ci-booted"),
            Guest => (GUESTS, "guest"),
            X86Guest => (GUESTS, "x86-guest"),
            Named(file) => (file, need.word()),
        }
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
    [Ci]:
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
        Exec "exec", I386Programs "i386-programs",
        /// x86's trap flag sends a signal.
        TrapFlag "trap-flag",
        /// `PR_SET_TSC`.
        TscDenial "tsc",
        Mremap "mremap", Proc "proc", Threads10000 "threads", UserNamespace "userns";
    [Ci, Guest]: Affinity "affinity", Seccomp "seccomp";
    [Root]:
        Cgroup2 "cgroup2", Chroot "chroot", Unshare "unshare",
        /// Another user, and namespaces without a user namespace.
        SuperUser "root",
        /// A file system that heeds the bit.
        Setuid "setuid";
    [Root, X86Guest]: TimeNamespace "timens";
    [Booted]: SystemdAnalyze "systemd-analyze";
    // The kernel's clock may be set.
    [Guest]: OwnClock "own-clock";
    // The clock source may be changed.
    [X86Guest]: ClockSourceSwitch "clocksource-switch";
    // It is after January 2038; FEAT_ECV of aarch64.
    [Named(GUESTS)]: Year2040 "2040", Ecv "ecv";
    [Named(JOBS), Named(RUN)]: Perf "perf";
    [Named(RUN)]:
        /// The counter clock reads the counter.
        Counter "counter",
        /// Rust's standard library for other architectures.
        Foreign "foreign",
        /// The images of the kernels of the matrix.
        Images "images";
}

impl Need {
    /// Returns whether `VDSO_TIME_TEST_REQUIRES` names it, or a place of it.
    pub fn is_required(self) -> bool {
        let required = env::var("VDSO_TIME_TEST_REQUIRES").unwrap_or_default();
        let names = |word: &str| {
            let mut all = Self::ALL.iter().flat_map(|need| need.words());
            assert!(all.any(|known| known == word), "no need and no place is called {word}");
            self.words().any(|own| own == word)
        };
        // Counts, so that each word is checked: `any` would stop before a wrong one.
        required.split_whitespace().filter(|word| names(word)).count() > 0
    }

    /// Returns the words that require it.
    fn words(self) -> impl Iterator<Item = &'static str> {
        let places = self.places().iter().map(move |place| place.listed(self).1);
        places.chain([self.word()])
    }
}
