'use strict';

// What all functions, all groups of logs and the API get: how they log, their key, their network,
// their traces and their limits.

module.exports = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  const functions = ['Ingest', 'Flush', 'Plan', 'Compact', 'Query', ...(s.rulesOn ? ['Rules'] : []), ...(s.replicaStore ? ['Replicate'] : [])];
  const settings = { LoggingConfig: s.logging, VpcConfig: s.vpc, KmsKeyArn: s.key, TracingConfig: s.tracing };
  const groups = [...functions, ...(s.accessLog ? ['HttpApi'] : [])];
  return {
    extensions: {
      ...Object.fromEntries(functions.map((name) => [`${name}LambdaFunction`, { Properties: settings }])),
      // Instances have the network of their capacity provider.
      IngestLambdaFunction: { Properties: { ...settings, ...(s.mode === 'grouped' && { VpcConfig: s.noValue, CapacityProviderConfig: s.capacity }) } },
      ...Object.fromEntries(groups.map((name) => [`${name}LogGroup`, { Properties: { KmsKeyId: s.key } }])),
      HttpApiStage: { Properties: { DefaultRouteSettings: s.apiLimits } },
    },
  };
};
