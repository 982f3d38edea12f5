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
    ($($(#[$doc:meta])* $Need:ident $word:literal: $first:expr $(, $other:expr)*;)+) => {
        /// What a test needs of its machine. A program has its name as its word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Need { $($(#[$doc])* $Need,)+ }

        impl Need {
            pub const ALL: &[Self] = &[$(Self::$Need),+];

            /// Returns the word in `VDSO_TIME_TEST_REQUIRES`.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$Need => $word),+ }
            }

            /// Returns where CI has it. A need that CI has nowhere does not compile.
            pub const fn places(self) -> &'static [Place] {
                match self { $(Self::$Need => &[$first $(, $other)*]),+ }
            }
        }
    };
}

needs! {
    // The kernel.
    Affinity "affinity": Ci, Guest;
    /// prctl(2) may change the auxiliary vector in /proc.
    Auxv "auxv": Ci;
    Cgroup2 "cgroup2": Root;
    Chroot "chroot": Root;
    /// It is known where the clock source is read.
    ClockSource "clocksource": Ci;
    /// Programs can be started.
    Exec "exec": Ci;
    I386Programs "i386-programs": Ci;
    Mremap "mremap": Ci;
    Perf "perf": Named(JOBS), Named(RUN);
    Proc "proc": Ci;
    /// Another user, and namespaces without a user namespace.
    SuperUser "root": Root;
    Seccomp "seccomp": Ci, Guest;
    /// A file system that heeds the bit.
    Setuid "setuid": Root;
    Threads10000 "threads": Ci;
    TimeNamespace "timens": Root, X86Guest;
    /// x86's trap flag sends a signal.
    TrapFlag "trap-flag": Ci;
    /// `PR_SET_TSC`.
    TscDenial "tsc": Ci;
    UserNamespace "userns": Ci;

    // The machine.
    /// The counter clock reads the counter.
    Counter "counter": Named(RUN);
    /// The clock source may be changed.
    ClockSourceSwitch "clocksource-switch": X86Guest;
    /// The kernel's clock may be set.
    OwnClock "own-clock": Guest;
    /// It is after January 2038.
    Year2040 "2040": Named(GUESTS);
    /// FEAT_ECV of aarch64.
    Ecv "ecv": Named(GUESTS);

    // Programs.
    AptConfig "apt-config": Ci;
    AptGet "apt-get": Ci;
    Bfd "ld.bfd": Ci;
    Cc "cc": Ci;
    Clang "clang": Ci;
    Cmake "cmake": Ci;
    CPlusPlus "g++": Ci;
    DpkgDeb "dpkg-deb": Ci;
    Gcc "gcc": Ci;
    GccI686 "i686-linux-gnu-gcc": Ci;
    Go "go": Ci;
    Gpg "gpg": Ci;
    Id "/usr/bin/id": Ci;
    Lld "ld.lld": Ci;
    Make "make": Ci;
    MuslGcc "musl-gcc": Ci;
    PkgConfig "pkg-config": Ci;
    Python "python3": Ci;
    /// With prometheus_client.
    Prometheus "/usr/bin/python3": Ci;
    Readelf "readelf": Ci;
    Sh "sh": Ci;
    SystemdAnalyze "systemd-analyze": Booted;
    Unshare "unshare": Root;
    Valgrind "valgrind": Ci;
    Xz "xz": Ci;
    /// A module of python3.
    Zig "ziglang": Ci;

    // What Rust makes.
    /// Rust for this machine.
    Compiler "compiler": Ci;
    /// libc's system calls have tables for a backtrace.
    Backtrace "backtrace": Ci;
    /// Rust's standard library for other architectures.
    Foreign "foreign": Named(RUN);
    /// The images of the kernels of the matrix.
    Images "images": Named(RUN);
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
