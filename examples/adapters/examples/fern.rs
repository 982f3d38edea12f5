//! fern: each line has the time of the coarse clock.

use std::error::Error;

use vdso_time_adapters::jiff_now;

fn main() -> Result<(), Box<dyn Error>> {
    fern::Dispatch::new()
        .format(|out, message, record| {
            let level = record.level();
            match jiff_now() {
                Ok(time) => out.finish(format_args!("{time:.3} {level} {message}")),
                Err(error) => out.finish(format_args!("{error}: {message}")),
            }
        })
        .chain(std::io::stdout())
        .apply()?;
    log::warn!("a line by fern");
    Ok(())
}
