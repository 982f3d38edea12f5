//! [`traced!`](crate::traced): the call, and the site that it is made at.

/// Makes a call that reads a clock a [`Site`](crate::Site): `traced!(clock_gettime(id))`, or with a name
/// `traced!("request start", Instant::now())`.
///
/// It takes the call as it stands in the program, so to trace one is to write the macro around it, and the value is the call's:
/// a `?` goes behind. What the call returns must be [`Read`](crate::Read). Without a name the site has that of the module.
///
/// Without the feature `enabled` it is the call and nothing else.
#[cfg(feature = "enabled")]
#[macro_export]
macro_rules! traced {
    ($name:literal, $call:expr $(,)?) => {
        $crate::hidden::site!($name, $call)
    };
    ($call:expr $(,)?) => {
        $crate::hidden::site!(::core::module_path!(), $call)
    };
}

/// Makes a call that reads a clock a [`Site`](crate::Site), with the feature `enabled`. Without it, as here, it is the call and nothing
/// else.
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

#[cfg(feature = "enabled")]
#[doc(hidden)]
#[macro_export]
macro_rules! __vdso_time_trace_site {
    ($name:expr, $call:expr) => {{
        #[$crate::hidden::linkme::distributed_slice($crate::hidden::SITES)]
        #[linkme(crate = $crate::hidden::linkme)]
        // The call sees this name, for items have no hygiene: it must not be one that the caller uses.
        static __VDSO_TIME_TRACE_SITE: $crate::Site =
            $crate::Site::new($name, ::core::stringify!($call), ::core::file!(), ::core::line!());
        match __VDSO_TIME_TRACE_SITE.ops() {
            ::core::option::Option::None => $call,
            ::core::option::Option::Some(ops) => {
                let (answer,) = __VDSO_TIME_TRACE_SITE.trace(ops, || $call);
                answer
            }
        }
    }};
}
