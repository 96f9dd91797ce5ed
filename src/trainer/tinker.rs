//! The Tinker API: submit, then poll the future. Requests of a run are submitted one after another,
//! because trainers of this family execute them in the order of arrival.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Adam, Asked, AskedStep, Datum, Loss, ModelRole, Reduction, Run, StepReport, Trainer,
    TrainerError, ValueTarget, adapter, mean_loss,
    operation::{self, LastResult, Operation},
    wire::{
        Capabilities, Forward, ForwardBackward, ForwardResult, Input, LossFn, Optim, OptimResult,
        Polled, Saved, Session, Submitted, WireDatum,
    },
};
use crate::{
    domain::{
        peer::{TrainerCapabilities, TrainerRecord},
        training::PolicyGradient,
    },
    net::{Client, NetError, Secret, pause_after},
    telemetry::Meters,
};

/// Deadline of a submission; the work itself is polled for.
const SUBMIT: Duration = Duration::from_secs(60);
/// Deadline of one operation, compilation included.
const OPERATION: Duration = Duration::from_secs(900);
/// Deadline of one poll; servers hold a poll for up to five minutes.
const POLL: Duration = Duration::from_secs(330);
/// Faults in a row that a poll may meet on its way.
const POLL_FAULTS: u32 = 6;
/// First pause before a poll is repeated.
const POLL_PAUSE: Duration = Duration::from_millis(500);
/// Servers drop the models of a session that is silent for some minutes.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A client of one trainer.
#[derive(Clone)]
pub struct Tinker {
    name: Arc<str>,
    base_model: Arc<str>,
    reduction: Reduction,
    http: Client,
    last_result: LastResult,
    meters: Meters,
}

impl Tinker {
    /// A client of a registered trainer, with its API key where it wants one.
    ///
    /// # Errors
    /// An HTTP client that cannot be built.
    pub fn new(
        trainer: &TrainerRecord,
        key: Option<&str>,
        meters: &Meters,
    ) -> Result<Self, TrainerError> {
        let TrainerRecord { name, url, base_model, kind, .. } = trainer;
        let http = Client::with_secret(url, key.map(Secret::api_key))
            .map_err(|source| TrainerError::Net { trainer: name.clone(), source })?;
        let reduction = Reduction::of_kind(*kind);
        operation::announce(meters, name);
        Ok(Self {
            name: name.as_str().into(),
            base_model: base_model.as_str().into(),
            reduction,
            http,
            last_result: LastResult::default(),
            meters: meters.clone(),
        })
    }

    fn net(&self, source: NetError) -> TrainerError {
        TrainerError::Net { trainer: self.name.to_string(), source }
    }

    async fn submit(
        &self,
        operation: &str,
        body: &impl Serialize,
    ) -> Result<Submitted, TrainerError> {
        let path = format!("/api/v1/{operation}");
        self.http.post(&path, body, SUBMIT).await.map_err(|e| self.net(e))
    }

    /// Why an operation failed. A loss that is not finite will be so again from the same state.
    fn failure(&self, operation: &'static str, reason: String, of_request: bool) -> TrainerError {
        let trainer = self.name.to_string();
        if of_request || reason.contains("not finite") {
            TrainerError::Rejected { trainer, operation, reason }
        } else {
            TrainerError::Failed { trainer, operation, reason }
        }
    }

    /// Polls until the result is there. A poll has no effect, so one that meets a fault of the way is repeated.
    async fn result<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        request_id: &str,
    ) -> Result<T, TrainerError> {
        let trainer = || self.name.to_string();
        let body = json!({ "request_id": request_id });
        let polling = async {
            let mut faults = 0;
            loop {
                let polled = self.http.post("/api/v1/retrieve_future", &body, POLL).await;
                let error = match polled {
                    Ok(answer) => match Polled::of(answer) {
                        Polled::Result(result) => {
                            return serde_json::from_value(result).map_err(|e| {
                                let peer = self.http.address().to_owned();
                                self.net(NetError::Decode { peer, reason: e.to_string() })
                            });
                        }
                        Polled::TryAgain => {
                            faults = 0;
                            pause_after(1, POLL_PAUSE).await;
                            continue;
                        }
                        Polled::Failed { reason, of_request } => {
                            return Err(self.failure(operation, reason, of_request));
                        }
                    },
                    Err(NetError::Status { status: 408, .. }) => continue,
                    // SkyRL answers so that the operation failed.
                    Err(NetError::Status { status: 400, body, .. }) => {
                        return Err(self.failure(operation, detail(&body), false));
                    }
                    Err(error) => error,
                };
                faults += 1;
                if faults >= POLL_FAULTS || !passes(&error) {
                    return Err(self.net(error));
                }
                pause_after(faults, POLL_PAUSE).await;
            }
        };
        tokio::time::timeout(OPERATION, polling).await.unwrap_or_else(|_| {
            let seconds = OPERATION.as_secs();
            Err(TrainerError::Late { trainer: trainer(), operation, seconds })
        })
    }

    async fn ask(
        &self,
        operation: &'static str,
        body: &impl Serialize,
    ) -> Result<Asked, TrainerError> {
        let asked = self.begin(operation);
        let submitted = asked.part(self.submit(operation, body)).await?;
        Ok(Asked { request_id: submitted.request_id, operation: asked })
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        asked: Asked,
    ) -> Result<T, TrainerError> {
        asked.operation.end(self.result(operation, &asked.request_id)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        body: &impl Serialize,
    ) -> Result<T, TrainerError> {
        let asked = self.ask(operation, body).await?;
        self.answer(operation, asked).await
    }

    fn begin(&self, operation: &'static str) -> Operation {
        let trainer = (&*self.name, self.http.address());
        Operation::begin(operation, trainer, &self.last_result, &self.meters)
    }
}

/// Whether a poll may do better later: too many requests, a fault of the server, or of the connection.
fn passes(error: &NetError) -> bool {
    match error {
        NetError::Connect { .. } | NetError::Broken { .. } | NetError::Timeout { .. } => true,
        NetError::Status { status, .. } => *status == 429 || *status >= 500,
        NetError::Decode { .. } | NetError::Private { .. } => false,
    }
}

fn lengths(data: &[Datum]) -> Vec<(usize, usize)> {
    data.iter().map(|d| (d.prompt.len() + d.completion.len(), d.completion.len())).collect()
}

fn detail(body: &str) -> String {
    serde_json::from_str::<serde_json::Value>(body)
        .ok()
        .and_then(|value| Some(value.get("detail")?.as_str()?.to_owned()))
        .unwrap_or_else(|| body.to_owned())
}

#[async_trait]
impl Trainer for Tinker {
    async fn check(&self) -> Result<TrainerCapabilities, TrainerError> {
        let path = "/api/v1/get_server_capabilities";
        let found: Capabilities =
            self.http.get(path, Duration::from_secs(15)).await.map_err(|e| self.net(e))?;
        Ok(TrainerCapabilities {
            models: found.supported_models.into_iter().map(|m| m.model_name).collect(),
            losses: found.supported_loss_fns,
        })
    }

    async fn open(
        &self,
        role: ModelRole,
        rank: u32,
        seed: u64,
        state: Option<&str>,
    ) -> Result<Box<dyn Run>, TrainerError> {
        let body = json!({
            "tags": [], "user_metadata": {}, "type": "create_session",
            "sdk_version": concat!("nlac-", env!("CARGO_PKG_VERSION")),
        });
        let creating = self.http.post("/api/v1/create_session", &body, SUBMIT);
        let creating = async { creating.await.map_err(|e| self.net(e)) };
        let session: Session = self.begin("create_session").end(creating).await?;
        let beating = self.clone();
        let session_id = session.session_id.clone();
        let heartbeat = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT).await;
                let body = json!({ "session_id": session_id, "type": "session_heartbeat" });
                if let Err(error) = beating.submit_plain("session_heartbeat", &body).await {
                    tracing::warn!(trainer.name = %beating.name, %error, "heartbeat failed");
                }
            }
        }));
        let mut body = json!({
            "session_id": session.session_id, "model_seq_id": 0, "base_model": &*self.base_model,
            "lora_config": { "rank": rank, "seed": seed }, "type": "create_model",
        });
        // Not of the Tinker API: a policy is created without it everywhere.
        if role == ModelRole::Critic {
            body["model_role"] = "critic".into();
        }
        let creating = async {
            let submitted = self.submit("create_model", &body).await?;
            let made = self.result("create_model", &submitted.request_id).await?;
            Ok((submitted, made))
        };
        let (submitted, made): (_, serde_json::Value) =
            self.begin("create_model").end(creating).await?;
        let model_id = submitted
            .model_id
            .or_else(|| Some(made.get("model_id")?.as_str()?.to_owned()))
            .ok_or_else(|| TrainerError::Failed {
                trainer: self.name.to_string(),
                operation: "create_model",
                reason: "the answer names no model".into(),
            })?;
        let run = TinkerRun { tinker: self.clone(), model_id, sequence: 0, _heartbeat: heartbeat };
        if let Some(path) = state {
            let body = json!({
                "model_id": run.model_id, "path": path, "optimizer": true, "type": "load_weights",
            });
            let _: serde_json::Value = self.call("load_weights", &body).await?;
        }
        Ok(Box::new(run))
    }

    async fn delete(&self, state: &str) -> Result<(), TrainerError> {
        let (model, name) = state_parts(state).ok_or_else(|| TrainerError::Rejected {
            trainer: self.name.to_string(),
            operation: "delete",
            reason: format!("{state} is not tinker://MODEL/weights/NAME"),
        })?;
        for kind in ["weights", "sampler_weights"] {
            let path = format!("/api/v1/training_runs/{model}/checkpoints/{kind}/{name}");
            match self.http.delete_raw(&path, SUBMIT).await {
                Ok(()) => {}
                // It is gone, or this trainer deletes nothing.
                Err(NetError::Status { status: 404 | 405 | 501, .. }) => {}
                Err(error) => return Err(self.net(error)),
            }
        }
        Ok(())
    }
}

/// The model and the name of `tinker://MODEL/weights/NAME`.
fn state_parts(state: &str) -> Option<(&str, &str)> {
    let (model, name) = state.strip_prefix("tinker://")?.split_once("/weights/")?;
    let plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    };
    (plain(model) && plain(name)).then_some((model, name))
}

impl Tinker {
    async fn submit_plain(
        &self,
        operation: &str,
        body: &impl Serialize,
    ) -> Result<(), TrainerError> {
        let path = format!("/api/v1/{operation}");
        self.http.post_bytes(&path, body, SUBMIT).await.map(|_| ()).map_err(|e| self.net(e))
    }
}

struct TinkerRun {
    tinker: Tinker,
    model_id: String,
    sequence: u64,
    _heartbeat: AbortOnDropHandle<()>,
}

impl TinkerRun {
    const fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// What is said of every position of the data, as the weights are; `read` is the loss that asks for it.
    async fn forward(
        &mut self,
        data: &[Datum],
        read: impl Fn(&Datum) -> Loss,
    ) -> Result<Vec<Vec<f32>>, TrainerError> {
        let data: Vec<_> =
            data.iter().map(|datum| Datum { loss: read(datum), ..datum.clone() }).collect();
        let Some(loss) = data.first().map(LossFn::of) else { return Ok(Vec::new()) };
        let input = Input { data: data.iter().map(WireDatum::summed).collect(), loss };
        let seq_id = self.next_sequence();
        let body = Forward { model_id: &self.model_id, seq_id, forward_input: input };
        let forward = self.tinker.call("forward", &body).await?;
        self.checked("forward", &lengths(&data), forward)
    }

    /// Data of one loss, as the trainer reduces it. `sequences` is how many share the step.
    async fn input(
        &mut self,
        loss: LossFn,
        data: &[Datum],
        sequences: usize,
    ) -> Result<Input, TrainerError> {
        if self.tinker.reduction == Reduction::TokenSum {
            return Ok(Input { data: data.iter().map(WireDatum::summed).collect(), loss });
        }
        // A mean over a sequence's tokens loses its weights; advantages keep them.
        let (loss, gradients) = match loss {
            LossFn::CrossEntropy => {
                let all = self.forward(data, |_| Loss::CrossEntropy).await?;
                let each = data.iter().zip(&all).map(|(d, l)| PolicyGradient::imitating(d, l));
                (LossFn::ImportanceSampling, each.collect())
            }
            LossFn::PpoCritic(_) => {
                let reason = "a trainer that averages losses per sequence has no value head";
                return Err(self.tinker.failure("forward_backward", reason.into(), true));
            }
            loss => (loss, data.iter().filter_map(|d| d.loss.policy_gradient().cloned()).collect()),
        };
        let gradients: Vec<PolicyGradient> = gradients;
        let each = data.iter().zip(&gradients);
        let data = each.map(|(datum, gradient)| WireDatum::averaged(datum, gradient, sequences));
        Ok(Input { data: data.collect(), loss })
    }

    /// What a result says, one number per position of each datum and finite.
    fn checked(
        &self,
        operation: &'static str,
        lengths: &[(usize, usize)],
        result: ForwardResult,
    ) -> Result<Vec<Vec<f32>>, TrainerError> {
        let failed = |reason: &str| self.tinker.failure(operation, reason.into(), false);
        if result.loss_fn_outputs.len() != lengths.len() {
            return Err(failed("it returns another number of outputs than of data"));
        }
        let said =
            result.loss_fn_outputs.into_iter().map(|output| output.logprobs.or(output.values));
        let all: Vec<Vec<f32>> = said.map(|said| said.map_or(Vec::new(), |s| s.data)).collect();
        for (said, (tokens, _)) in all.iter().zip(lengths) {
            if said.len() + 1 != *tokens {
                return Err(failed("log-probabilities or values are missing"));
            }
            if said.iter().any(|number| !number.is_finite()) {
                let what = "a log-probability or a value is not finite; lower the learning rate";
                return Err(failed(what));
            }
        }
        Ok(all)
    }
}

#[async_trait]
impl Run for TinkerRun {
    async fn ask(&mut self, data: &[Datum], adam: &Adam) -> Result<AskedStep, TrainerError> {
        let mut losses: Vec<(LossFn, Vec<usize>)> = Vec::new();
        for (place, datum) in data.iter().enumerate() {
            let loss = LossFn::of(datum);
            match losses.iter_mut().find(|(known, _)| *known == loss) {
                Some((_, places)) => places.push(place),
                None => losses.push((loss, vec![place])),
            }
        }
        let mut gradients = Vec::with_capacity(losses.len());
        for (loss, places) in losses {
            let part: Vec<_> = places.iter().map(|&place| data[place].clone()).collect();
            let input = self.input(loss, &part, data.len()).await?;
            let seq_id = self.next_sequence();
            let forward =
                ForwardBackward { model_id: &self.model_id, seq_id, forward_backward_input: input };
            gradients.push((places, self.tinker.ask("forward_backward", &forward).await?));
        }
        let seq_id = self.next_sequence();
        let optim = Optim { model_id: &self.model_id, seq_id, adam_params: adam.into() };
        let update = self.tinker.ask("optim_step", &optim).await?;
        let returns = data.iter().map(|datum| datum.loss.returns().map(<[f32]>::to_vec)).collect();
        Ok(AskedStep { gradients, update, lengths: lengths(data), returns })
    }

    async fn report(&self, step: AskedStep) -> Result<StepReport, TrainerError> {
        let mut predicted = vec![Vec::new(); step.lengths.len()];
        for (places, asked) in step.gradients {
            let lengths: Vec<_> = places.iter().map(|&place| step.lengths[place]).collect();
            let forward = self.tinker.answer("forward_backward", asked).await?;
            let all = self.checked("forward_backward", &lengths, forward)?;
            for ((place, said), (_, learnt)) in places.into_iter().zip(all).zip(lengths) {
                predicted[place] = said[said.len() - learnt..].to_vec();
            }
        }
        let spoken = predicted.iter().zip(&step.returns);
        let losses = spoken.map(|(said, returns)| mean_loss(said, returns.as_deref())).collect();
        let optim: OptimResult = self.tinker.answer("optim_step", step.update).await?;
        let grad_norm = optim.metrics.and_then(|metrics| {
            let value = metrics.get("grad_norm").or_else(|| metrics.get("skyrl.ai/grad_norm"))?;
            Some(value.as_f64()? as f32)
        });
        Ok(StepReport { losses, predicted, grad_norm })
    }

    async fn values(&mut self, data: &[Datum]) -> Result<Vec<Vec<f32>>, TrainerError> {
        // The loss of a critic needs returns, also where only its values are asked for.
        let unknown = |datum: &Datum| {
            Loss::Value(ValueTarget { returns: vec![0.0; datum.completion.len()], clip: None })
        };
        let all = self.forward(data, unknown).await?;
        let completions = data
            .iter()
            .zip(all)
            .map(|(datum, said)| said[said.len() - datum.completion.len()..].to_vec());
        Ok(completions.collect())
    }

    async fn save_state(&mut self, name: &str) -> Result<String, TrainerError> {
        let body = json!({ "model_id": self.model_id, "path": name, "type": "save_weights" });
        let saved: Saved = self.tinker.call("save_weights", &body).await?;
        Ok(saved.path)
    }

    async fn export_adapter(&mut self, name: &str, into: &Path) -> Result<(), TrainerError> {
        let body =
            json!({ "model_id": self.model_id, "path": name, "type": "save_weights_for_sampler" });
        let path = format!("/api/v1/training_runs/{}/checkpoints/{name}/archive", self.model_id);
        let saving = self.tinker.ask("save_weights_for_sampler", &body).await?;
        let exporting = async {
            let _: serde_json::Value =
                self.tinker.result("save_weights_for_sampler", &saving.request_id).await?;
            self.tinker.http.get_archive(&path, OPERATION).await.map_err(|e| self.tinker.net(e))
        };
        let archive = saving.operation.end(exporting).await?;
        Ok(adapter::unpack(&archive, into)?)
    }

    async fn close(self: Box<Self>) -> Result<(), TrainerError> {
        let body = json!({ "model_id": self.model_id, "type": "unload_model" });
        let _: serde_json::Value = self.tinker.call("unload_model", &body).await?;
        Ok(())
    }
}
