//! [`traced!`](crate::traced).

/// Makes a call that reads a clock a [`Site`](crate::Site), and returns what the call returns.
///
/// `traced!(call)` or `traced!("name", call)`. Without a name the site has that of the module. The
/// call must return a [`Read`](crate::Read).
///
/// Without the feature `enabled` the macro is the bare call.
#[cfg(feature = "enabled")]
#[macro_export]
macro_rules! traced {
    (@site $name:expr, $call:expr) => {{
        // The call sees this name, because items have no hygiene. So it is one that no caller uses.
        #[$crate::hidden::linkme::distributed_slice($crate::hidden::SITES)]
        #[linkme(crate = $crate::hidden::linkme)]
        static __VDSO_TIME_TRACE_SITE: $crate::Site =
            $crate::Site::new($name, ::core::stringify!($call), ::core::file!(), ::core::line!());
        let answer = $call;
        if __VDSO_TIME_TRACE_SITE.is_traced() {
            __VDSO_TIME_TRACE_SITE.trace($crate::Read::nanos(&answer));
        }
        answer
    }};
    ($name:literal, $call:expr $(,)?) => {
        $crate::traced!(@site $name, $call)
    };
    ($call:expr $(,)?) => {
        $crate::traced!(@site ::core::module_path!(), $call)
    };
}

/// Makes a call that reads a clock a [`Site`](crate::Site), with the feature `enabled`. It is off,
/// so this is the bare call.
#[cfg(not(feature = "enabled"))]
#[macro_export]
macro_rules! traced {
    ($name:literal, $call:expr $(,)?) => {
        $call
    };
    ($call:expr $(,)?) => {
        $call
    };
}
