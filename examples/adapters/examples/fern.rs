//! fern: each line has the time of the coarse clock.

use vdso_time_adapters::jiff_now;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fern::Dispatch::new()
        .format(|out, message, record| match jiff_now() {
            Ok(time) => out.finish(format_args!("{time:.3} {} {message}", record.level())),
            Err(error) => out.finish(format_args!("{error}: {message}")),
        })
        .chain(std::io::stdout())
        .apply()?;
    log::warn!("a line by fern");
    Ok(())
}
