"""SageMaker endpoints: a container's wire format behind AWS's address, frames and errors."""
