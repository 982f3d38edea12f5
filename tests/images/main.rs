//! The parser of vDSO images: images of every kernel, malformed images, and images in memory.

mod known;
mod malformed;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod goblin;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod mapped;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod routes;
