//! log4rs: an encoder writes the line with the time of the coarse clock.

use log::LevelFilter;
use log4rs::append::console::ConsoleAppender;
use log4rs::config::{Appender, Config, Root};
use vdso_time_adapters::log4rs_encoder::CoarseTime;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let console = ConsoleAppender::builder().encoder(Box::new(CoarseTime)).build();
    let console = Appender::builder().build("console", Box::new(console));
    let root = Root::builder().appender("console").build(LevelFilter::Info);
    log4rs::init_config(Config::builder().appender(console).build(root)?)?;
    log::warn!("a line by log4rs");
    Ok(())
}
