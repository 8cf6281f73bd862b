'use strict';

// The function that evaluates the rules of tenants, and its queue; nothing without rules=on. It is
// query-fn with other settings, and serves the API that changes and shows rules, so that the
// function that answers queries needs no rights on them.

const seconds = (n) => `${n}s`;

// functions are what osls makes of it.
module.exports.functions = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  if (!s.rulesOn) return {};
  const route = (method) => (path) => ({ httpApi: { method, path, authorizer: s.authorizer } });
  const below = (prefixes, ...paths) => prefixes.flatMap((prefix) => paths.map((path) => prefix + path));
  const changed = below(['', '/prometheus'], '/config/v1/{proxy+}');
  // These would else go to the query function. Grafana reads in buildinfo that rules can be
  // changed.
  const shown = below(['', '/prometheus', '/workspaces/{id}'], '/api/v1/rules', '/api/v1/alerts', '/api/v1/status/buildinfo');
  return {
    rules: {
      handler: 'bootstrap',
      package: { artifact: `../dist/${s.architecture}/query-fn.zip` },
      role: 'RulesRole',
      memorySize: s.rulesMemory,
      timeout: s.rulesTimeout,
      maximumRetryAttempts: 0, // the next minute retries
      maximumEventAge: 60,
      environment: {
        PROMLAKE_AUTH_TOKENS: s.tokensSource,
        PROMLAKE_RUNTIME_CONFIG_FILE: s.runtimeConfigFile,
        PROMLAKE_QUERY_TIMEOUT: seconds(Math.floor(s.rulesTimeout / 5)), // three fifths are for queries
        PROMLAKE_QUERY_CACHE_DIR: '/tmp/promlake',
        PROMLAKE_RULER_SCHEDULED: 'true',
        PROMLAKE_RULER_ENABLE_API: 'true',
        PROMLAKE_RULER_APPLICATION: 'Grafana Mimir', // else Grafana does not edit rules
        PROMLAKE_RULER_QUEUE_URL: { Ref: 'RulesQueue' },
        PROMLAKE_RULER_SAMPLE_DELAY: seconds(s.rulesDelay),
        PROMLAKE_RULER_ALERTMANAGER_URL: s.alertmanagers,
        PROMLAKE_RULER_WEBHOOK_URL: s.webhook,
        PROMLAKE_RULER_SNS_TOPIC_ARN: s.snsTopicArn,
        PROMLAKE_RULER_REPEAT_INTERVAL: s.rulesRepeat,
        PROMLAKE_RULER_EXTERNAL_LABELS: s.rulesExternalLabels,
        PROMLAKE_RULER_ALERT_RELABEL_CONFIGS: s.rulesAlertRelabelConfigs,
        PROMLAKE_RULER_EXTERNAL_URL: s.publicUrl,
      },
      events: [
        { schedule: { rate: ['rate(1 minute)'], description: 'Promlake evaluates the rules of tenants.' } },
        {
          sqs: {
            arn: { 'Fn::GetAtt': ['RulesQueue', 'Arn'] },
            batchSize: 1,
            maximumConcurrency: s.rulesConcurrency,
            functionResponseType: 'ReportBatchItemFailures',
          },
        },
        ...[...changed, ...shown].map(route('GET')),
        ...changed.map(route('POST')),
        ...changed.map(route('DELETE')),
      ],
    },
  };
};

// resources are the queue.
module.exports.resources = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  const stage = await resolveVariable('sls:stage');
  if (!s.rulesOn) return { Resources: {} };
  return {
    Resources: {
      // Rule groups to evaluate now. Messages are hints that the next minute repeats: they expire
      // soon, so the queue needs no dead-letter queue.
      RulesQueue: {
        Type: 'AWS::SQS::Queue',
        Properties: {
          QueueName: `promlake-${stage}-rules.fifo`,
          FifoQueue: true,
          ...s.queueEncryption,
          MessageRetentionPeriod: Math.max(60, s.rulesTimeout),
          VisibilityTimeout: s.rulesTimeout,
        },
      },
    },
  };
};
