"""The SageMaker dialect in tests: fixtures, fake server, published types, data for suites over all dialects."""
