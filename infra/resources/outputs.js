'use strict';

// The outputs of the stack, and the domain of the API. osls adds the URLs of the functions.

const output = (Description, Value) => ({ Description, Value });

module.exports = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  const api = (path) => ({ 'Fn::Join': ['', [s.publicUrl, path]] });
  const Resources = {};
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
  if (s.domain !== '') {
    const configuration = { EndpointType: 'REGIONAL', SecurityPolicy: 'TLS_1_2', CertificateArn: s.certificate };
    Resources.Domain = { Type: 'AWS::ApiGatewayV2::DomainName', Properties: { DomainName: s.domain, DomainNameConfigurations: [configuration] } };
    Resources.DomainMapping = {
      Type: 'AWS::ApiGatewayV2::ApiMapping',
      Properties: { DomainName: { Ref: 'Domain' }, ApiId: { Ref: 'HttpApi' }, Stage: { Ref: 'HttpApiStage' } },
    };
    Outputs.DomainTarget = output("What the domain's DNS record points to: as a CNAME, or as an alias in Route 53.", { 'Fn::GetAtt': ['Domain', 'RegionalDomainName'] });
    Outputs.DomainTargetZone = output('The hosted zone of that target, for an alias.', { 'Fn::GetAtt': ['Domain', 'RegionalHostedZoneId'] });
  }
  return { Resources, Outputs };
};
