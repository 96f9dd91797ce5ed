//! A clock that jumps, by libfaketime: of the calendar, not of the timers, as when somebody sets a machine's clock.

use std::path::PathBuf;

/// The clock of a program that was started with its variables.
pub struct Clock {
    file: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// None where libfaketime is not installed. The clock is right at first.
    pub fn make(file: PathBuf) -> Option<Self> {
        let roots = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];
        let places = ["x86_64-linux-gnu/faketime", "aarch64-linux-gnu/faketime", "faketime"];
        let mut all = roots.iter().flat_map(|root| places.iter().map(move |place| (root, place)));
        let library = all.find_map(|(root, place)| {
            let library = PathBuf::from(root).join(place).join("libfaketimeMT.so.1");
            library.exists().then_some(library)
        })?;
        let clock = Self { file, library };
        clock.jump("+0");
        Some(clock)
    }

    /// From here on the clock is so far from the right time, such as `+1h`.
    pub fn jump(&self, offset: &str) {
        // A reader never sees half a file.
        let next = self.file.with_extension("next");
        std::fs::write(&next, offset).unwrap();
        std::fs::rename(next, &self.file).unwrap();
    }

    /// Variables of a program whose clock this is.
    pub fn variables(&self) -> Vec<(String, String)> {
        let text = |path: &PathBuf| path.display().to_string();
        [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file)),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}
