//! ReAct: the prompt alone. Nothing is trained; the base model is evaluated once.

use async_trait::async_trait;

use super::{Algorithm, Annotations, Asked, Draw, Forecast, Replayed, Setting};
use crate::domain::{fault::Fault, spec::ReactSpec};

#[async_trait]
impl Algorithm for ReactSpec {
    fn draw(&self) -> Draw<'_> {
        Draw::Nothing
    }

    fn forecast(&self, _forecast: &Forecast<'_>) -> Option<Asked> {
        Some(Asked::default())
    }

    async fn annotate(
        &self,
        _setting: &Setting<'_, ()>,
        _batch: &[Replayed],
    ) -> Result<Annotations, Fault> {
        Ok(Annotations::default())
    }
}
