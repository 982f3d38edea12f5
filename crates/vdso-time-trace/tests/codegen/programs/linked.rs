//! Prints the names of its sites, the number of counted reads, and the number of sites of the
//! shared objects in its arguments.

use std::env;
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem;

use vdso_time_trace::{Counter, Link, PerSite, Select, Site, Tracer, attach, report, sites, traced};

static CALLS: PerSite<Counter, 16> = PerSite::new();
static TRACER: Tracer = Tracer::new(&CALLS);
static LINKS: [Link; 16] = Link::array();

#[allow(dead_code, reason = "its site is listed all the same")]
fn never_called() -> i64 {
    traced!("program/never called", vdso_time::time())
}

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn sites_of(object: &str) -> usize {
    const RTLD_NOW: c_int = 2;
    let object = CString::new(object).unwrap();
    // SAFETY: the test built the shared object, which has no constructors.
    let library = unsafe { dlopen(object.as_ptr(), RTLD_NOW) };
    // SAFETY: the library is not unloaded.
    let function = unsafe { dlsym(library, c"sites_of_this_object".as_ptr()) };
    assert!(!library.is_null() && !function.is_null());
    // SAFETY: this is the function's signature in `library.rs`.
    let function = unsafe { mem::transmute::<*mut c_void, extern "C" fn() -> usize>(function) };
    function()
}

fn main() {
    attach(&TRACER, Select::All, &LINKS).unwrap();
    traced!("program/called", vdso_time::time());
    library::called();
    library::inlined();
    let mut names: Vec<_> = sites().iter().map(Site::name).collect();
    names.sort_unstable();
    println!("{}", names.join(", "));
    println!("{} counted", report(&CALLS).rows().map(|(_, calls)| calls).sum::<u64>());
    for object in env::args().skip(1) {
        println!("{} in the shared object", sites_of(&object));
    }
}
