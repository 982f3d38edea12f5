//! Prints the sites that were linked, those that were counted, and how many a shared object has, if one is named.

use std::env;
use std::ffi::{CString, c_char, c_int, c_void};

use vdso_time_trace::{Counter, Link, PerSite, Select, Tracer, attach, report, sites, traced};

static CALLS: PerSite<Counter, 16> = PerSite::new();
static TRACER: Tracer = Tracer::new(&CALLS);
static LINKS: [Link; 16] = Link::array();

#[allow(dead_code)]
fn never_called() -> i64 {
    traced!("program/never called", vdso_time::time())
}

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn sites_of(object: &str) -> usize {
    let object = CString::new(object).unwrap();
    // SAFETY: it is a shared object without constructors.
    let library = unsafe { dlopen(object.as_ptr(), 2) };
    assert!(!library.is_null());
    // SAFETY: the library stays.
    let function = unsafe { dlsym(library, c"linked_sites".as_ptr()) };
    assert!(!function.is_null());
    // SAFETY: that is its signature.
    let function = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(function) };
    function()
}

fn main() {
    attach(&TRACER, Select::All, &LINKS).unwrap();
    traced!("program/called", vdso_time::time());
    linked::called();
    linked::inlined();
    let mut names: Vec<_> = sites().iter().map(vdso_time_trace::Site::name).collect();
    names.sort_unstable();
    println!("{}", names.join(", "));
    let report = report(&CALLS);
    let counted: u64 = report.rows().map(|(_, calls)| calls).sum();
    println!("{counted} counted");
    for object in env::args().skip(1) {
        println!("{} in the shared object", sites_of(&object));
    }
}
