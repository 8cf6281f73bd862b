'use strict';

// The outputs of the stack. osls adds the URLs of the functions.

const api = (path) => ({ 'Fn::Sub': `https://\${HttpApi}.execute-api.\${AWS::Region}.\${AWS::URLSuffix}${path}` });

const output = (Description, Value) => ({ Description, Value });

module.exports = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  const Outputs = {
    WriteUrl: output("The URL of Prometheus' remote_write.", api('/api/v1/write')),
    PrometheusUrl: output('The URL of a Grafana data source of type Prometheus; answers within 30 seconds and 6 MB.', api('')),
    BucketName: output('The bucket with all data; it stays when the stack is removed.', { Ref: 'Bucket' }),
    WriteQueueUrl: output('Writes that are not segments yet; the queue stays when the stack is removed.', { Ref: 'WriteQueue' }),
    DeadLetterQueueUrl: output('Writes that could not be made segments; the queue stays when the stack is removed.', { Ref: 'DeadLetterQueue' }),
    JobQueueUrl: output('Compaction jobs.', { Ref: 'JobQueue' }),
  };
  if (s.ingestUrl) {
    const url = { 'Fn::Sub': '${IngestLambdaFunctionUrl.FunctionUrl}api/v1/write' }; // it ends with /
    Outputs.WriteFunctionUrl = output("The URL of Prometheus' remote_write without the API: its requests cost nothing.", url);
  }
  return { Outputs };
};
