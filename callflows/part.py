"""What all parts of a flow file share."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Frozen, and nothing unknown is let through."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
