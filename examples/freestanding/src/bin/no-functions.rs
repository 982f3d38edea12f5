//! Does nothing. Compared with `five-functions`, it gives the size of the five functions.

#![no_std]
#![no_main]

freestanding::start!(|_, _| 0);
