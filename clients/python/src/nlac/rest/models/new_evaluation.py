from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define

from ..models.task_split import TaskSplit, check_task_split
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.environment_spec import EnvironmentSpec


T = TypeVar("T", bound="NewEvaluation")


@_attrs_define
class NewEvaluation:
    """Request for an evaluation. Defaults come from the checkpoint's job: environment, prompts, temperatures,
    seed.

    """

    against: None | Unset | UUID = UNSET
    checkpoint: None | Unset | UUID = UNSET
    count: int | None | Unset = UNSET
    """ Number of tasks. The default is that of the job's full evaluations. """
    engine: None | str | Unset = UNSET
    """ Engine to use. Without a checkpoint, the engine's model is evaluated, for example a chat model. """
    environment: EnvironmentSpec | None | Unset = UNSET
    job: None | Unset | UUID = UNSET
    name: None | str | Unset = UNSET
    """ Name for people. The default is `eval-` and the name of the job. """
    seed: int | None | Unset = UNSET
    """ Seed of all random choices. The same seed gives the same tasks. """
    tasks: None | TaskSplit | Unset = UNSET
    temperatures: list[float] | None | Unset = UNSET
    """ Sampling temperatures of the policy. 0 is greedy. All tasks are played at each temperature. """
    trials: int | None | Unset = UNSET
    """ Episodes per task. The default is 1. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.environment_spec import EnvironmentSpec

        against: None | str | Unset
        if isinstance(self.against, Unset):
            against = UNSET
        elif isinstance(self.against, UUID):
            against = str(self.against)
        else:
            against = self.against

        checkpoint: None | str | Unset
        if isinstance(self.checkpoint, Unset):
            checkpoint = UNSET
        elif isinstance(self.checkpoint, UUID):
            checkpoint = str(self.checkpoint)
        else:
            checkpoint = self.checkpoint

        count: int | None | Unset
        if isinstance(self.count, Unset):
            count = UNSET
        else:
            count = self.count

        engine: None | str | Unset
        if isinstance(self.engine, Unset):
            engine = UNSET
        else:
            engine = self.engine

        environment: dict[str, Any] | None | Unset
        if isinstance(self.environment, Unset):
            environment = UNSET
        elif isinstance(self.environment, EnvironmentSpec):
            environment = self.environment.to_dict()
        else:
            environment = self.environment

        job: None | str | Unset
        if isinstance(self.job, Unset):
            job = UNSET
        elif isinstance(self.job, UUID):
            job = str(self.job)
        else:
            job = self.job

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        seed: int | None | Unset
        if isinstance(self.seed, Unset):
            seed = UNSET
        else:
            seed = self.seed

        tasks: None | str | Unset
        if isinstance(self.tasks, Unset):
            tasks = UNSET
        elif isinstance(self.tasks, str):
            tasks = self.tasks
        else:
            tasks = self.tasks

        temperatures: list[float] | None | Unset
        if isinstance(self.temperatures, Unset):
            temperatures = UNSET
        elif isinstance(self.temperatures, list):
            temperatures = self.temperatures

        else:
            temperatures = self.temperatures

        trials: int | None | Unset
        if isinstance(self.trials, Unset):
            trials = UNSET
        else:
            trials = self.trials

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if against is not UNSET:
            field_dict["against"] = against
        if checkpoint is not UNSET:
            field_dict["checkpoint"] = checkpoint
        if count is not UNSET:
            field_dict["count"] = count
        if engine is not UNSET:
            field_dict["engine"] = engine
        if environment is not UNSET:
            field_dict["environment"] = environment
        if job is not UNSET:
            field_dict["job"] = job
        if name is not UNSET:
            field_dict["name"] = name
        if seed is not UNSET:
            field_dict["seed"] = seed
        if tasks is not UNSET:
            field_dict["tasks"] = tasks
        if temperatures is not UNSET:
            field_dict["temperatures"] = temperatures
        if trials is not UNSET:
            field_dict["trials"] = trials

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.environment_spec import EnvironmentSpec

        d = dict(src_dict)

        def _parse_against(data: object) -> None | Unset | UUID:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                against_type_0 = UUID(data)

                return against_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | UUID, data)

        against = _parse_against(d.pop("against", UNSET))

        def _parse_checkpoint(data: object) -> None | Unset | UUID:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                checkpoint_type_0 = UUID(data)

                return checkpoint_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | UUID, data)

        checkpoint = _parse_checkpoint(d.pop("checkpoint", UNSET))

        def _parse_count(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        count = _parse_count(d.pop("count", UNSET))

        def _parse_engine(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        engine = _parse_engine(d.pop("engine", UNSET))

        def _parse_environment(data: object) -> EnvironmentSpec | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                environment_type_0 = EnvironmentSpec.from_dict(data)

                return environment_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EnvironmentSpec | None | Unset, data)

        environment = _parse_environment(d.pop("environment", UNSET))

        def _parse_job(data: object) -> None | Unset | UUID:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                job_type_0 = UUID(data)

                return job_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | UUID, data)

        job = _parse_job(d.pop("job", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_seed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seed = _parse_seed(d.pop("seed", UNSET))

        def _parse_tasks(data: object) -> None | TaskSplit | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tasks_type_0 = check_task_split(data)

                return tasks_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TaskSplit | Unset, data)

        tasks = _parse_tasks(d.pop("tasks", UNSET))

        def _parse_temperatures(data: object) -> list[float] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                temperatures_type_0 = cast(list[float], data)

                return temperatures_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[float] | None | Unset, data)

        temperatures = _parse_temperatures(d.pop("temperatures", UNSET))

        def _parse_trials(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        trials = _parse_trials(d.pop("trials", UNSET))

        new_evaluation = cls(
            against=against,
            checkpoint=checkpoint,
            count=count,
            engine=engine,
            environment=environment,
            job=job,
            name=name,
            seed=seed,
            tasks=tasks,
            temperatures=temperatures,
            trials=trials,
        )

        return new_evaluation
