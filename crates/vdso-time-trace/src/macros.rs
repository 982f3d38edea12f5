//! [`traced!`](crate::traced).

/// Turns a call that reads a clock into a [`Site`](crate::Site), and returns what the call returns.
///
/// Write `traced!(call)` or `traced!("name", call)`. Without a name, the site gets the path of the
/// module as its name. The call must return a [`Read`](crate::Read). If the call returns an `i64`,
/// the number counts as seconds, because `time()` returns its seconds as an `i64`.
///
/// Without the feature `enabled`, the macro expands to the bare call.
#[cfg(feature = "enabled")]
#[macro_export]
macro_rules! traced {
    (@site $name:expr, $call:expr) => {{
        // `$call` can see the name of this static, because macro hygiene does not apply to items.
        // So the name is one that no caller is likely to use.
        #[$crate::hidden::linkme::distributed_slice($crate::hidden::SITES)]
        #[linkme(crate = $crate::hidden::linkme)]
        static __VDSO_TIME_TRACE_SITE: $crate::Site = $crate::Site::new(
            $name,
            &const {
                $crate::hidden::function::<
                    { $crate::hidden::function_length(::core::stringify!($call)) },
                >(::core::stringify!($call))
            },
            ::core::file!(),
            ::core::line!(),
        );
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

/// With the feature `enabled`, turns a call that reads a clock into a [`Site`](crate::Site). This
/// documentation was built without the feature, so the macro expands to the bare call.
///
/// Write `traced!(call)` or `traced!("name", call)`. The call must return a [`Read`](crate::Read).
/// If the call returns an `i64`, the number counts as seconds, because `time()` returns its seconds
/// as an `i64`.
#[cfg(not(feature = "enabled"))]
#[macro_export]
macro_rules! traced {
    ($name:literal, $call:expr $(,)?) => {{
        let answer = $call;
        $crate::hidden::bare($name, answer)
    }};
    ($call:expr $(,)?) => {
        $crate::traced!("", $call)
    };
}

/// With and without the feature `enabled`, `traced!` accepts a call that returns a `Read`:
///
/// ```
/// vdso_time_trace::traced!("a name", 1_i64);
/// ```
///
/// No other call compiles, and the name must be a string:
///
/// ```compile_fail,E0277
/// vdso_time_trace::traced!("a name", 1_u64);
/// ```
///
/// ```compile_fail,E0277
/// vdso_time_trace::traced!(1_u64);
/// ```
///
/// ```compile_fail,E0308
/// vdso_time_trace::traced!(1, 1_i64);
/// ```
#[cfg(doctest)]
struct Bounds;
