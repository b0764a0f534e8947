"""What requests say: the base of the models of queries, bodies and forms."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Parameters(BaseModel):
    """Base of queries and bodies: an unknown key is an error, keys are camelCase, values are text or JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)
