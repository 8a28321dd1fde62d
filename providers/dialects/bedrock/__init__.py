"""Amazon Bedrock: Converse, InvokeModel, and Claude on InvokeModel."""
