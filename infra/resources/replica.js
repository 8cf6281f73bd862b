'use strict';

// The function that keeps a replica of the bucket in a bucket of another region; nothing without
// replica-bucket. It is compact-fn with another setting.

// functions are what osls makes of it.
module.exports.functions = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  if (!s.replicaStore) return {};
  return {
    replicate: {
      handler: 'bootstrap',
      package: { artifact: `../dist/${s.architecture}/compact-fn.zip` },
      role: 'ReplicateRole',
      memorySize: s.replicateMemory,
      timeout: s.replicateTimeout,
      ephemeralStorageSize: s.replicateTmp,
      maximumRetryAttempts: 0, // the next minute goes on
      maximumEventAge: 60,
      environment: { PROMLAKE_REPLICA_STORE: s.replicaStore },
      events: [{ schedule: { rate: ['rate(1 minute)'], description: 'Promlake updates the replica of its bucket.' } }],
    },
  };
};
