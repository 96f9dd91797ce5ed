//! Downloads of any size into files.

use std::{
    fs,
    io::{BufWriter, IsTerminal},
    path::Path,
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Failure, client::Api, report};

/// Saves the answer of a route in a file, or writes it to standard output for `-`. `binary` names data that a terminal
/// cannot show.
pub async fn save(api: &Api, route: &str, out: &Path, binary: Option<&str>) -> Result<(), Failure> {
    if out.as_os_str() == "-" {
        let mut output = std::io::stdout();
        if let Some(data) = binary.filter(|_| output.is_terminal()) {
            let remedy = "give a file with --out";
            return Err(format!("{data} cannot be printed on a terminal; {remedy}").into());
        }
        api.save(route, &mut output).await?;
        return Ok(());
    }
    // An interrupted download must not get the final file name.
    let mut partial = out.to_owned().into_os_string();
    partial.push(".part");
    let partial = Path::new(&partial);
    let cannot =
        |e: std::io::Error| format!("cannot write {}: {e}; choose another --out", out.display());
    let file = BufWriter::new(fs::File::create(partial).map_err(cannot)?);
    let bar = progress();
    let saved = api.save(route, &mut bar.wrap_write(file)).await;
    bar.finish_and_clear();
    let saved = saved
        .and_then(|bytes| fs::rename(partial, out).map(|()| bytes).map_err(|e| cannot(e).into()));
    if saved.is_err() {
        let _ = fs::remove_file(partial);
    }
    report::line(&format!("{} bytes in {}", saved?, out.display()));
    Ok(())
}

/// How much has arrived. It is shown on a terminal only.
fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("  {spinner} {bytes} at {bytes_per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}
