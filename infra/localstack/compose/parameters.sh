#!/bin/sh
# Run by LocalStack as soon as it is ready: the parameter that the functions read. Nobody checks
# that token.
exec awslocal ssm put-parameter --name /promlake/local/self-token --value none --type SecureString --overwrite
