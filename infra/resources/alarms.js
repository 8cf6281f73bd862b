'use strict';

const crypto = require('node:crypto');

// The alarms, which need a person, and the budget. The invokers retry failures of functions, so
// failures count only if they persist. An alarm costs money, so none watches what another one
// covers: failures of ingest and query are 5xx at their entrances, and throttled consumers and
// planners are late.

const FAILING = ['flush', 'plan', 'compact', 'rules'];
const THROTTLED = ['ingest', 'query', 'rules']; // at their URLs, callers get 429

const SILENCE_SECONDS = 900; // the planner knows for at least this long when senders last wrote

const REPLICA_SECONDS = 300; // the lag of a pass is that of the time it takes

const title = (name) => name[0].toUpperCase() + name.slice(1);

const alarm = (description, properties, actions) => ({
  Type: 'AWS::CloudWatch::Alarm',
  Properties: {
    AlarmDescription: description,
    ComparisonOperator: 'GreaterThanOrEqualToThreshold',
    Period: 300,
    EvaluationPeriods: 3,
    TreatMissingData: 'notBreaching',
    AlarmActions: actions,
    OKActions: actions,
    ...properties,
  },
});

const ofQueue = (queue, metric) => ({
  Namespace: 'AWS/SQS',
  MetricName: metric,
  Dimensions: [{ Name: 'QueueName', Value: { 'Fn::GetAtt': [queue, 'QueueName'] } }],
  Statistic: 'Maximum',
});

// ofLog makes a metric of a function's log lines with a msg. Lambda does not wrap lines that are
// JSON already.
const ofLog = (name, metric, stage, msg, value, unit) => ({
  Type: 'AWS::Logs::MetricFilter',
  Properties: {
    LogGroupName: { Ref: `${title(name)}LogGroup` },
    FilterPattern: `{ $.msg = "${msg}" }`,
    MetricTransformations: [{ MetricNamespace: `Promlake/${stage}`, MetricName: metric, MetricValue: value, Unit: unit }],
  },
});

const ofFunction = (name, metric) => ({
  Namespace: 'AWS/Lambda',
  MetricName: metric,
  Dimensions: [{ Name: 'FunctionName', Value: { Ref: `${title(name)}LambdaFunction` } }],
  Statistic: 'Sum',
  Threshold: 1,
});

// The entrances for HTTP requests. An answer with an error is no failed invocation, so only these
// metrics show that writes or queries fail. AWS's documentation: "Monitor HTTP APIs with CloudWatch
// metrics" and "Monitoring Lambda function URLs".
const entrances = (ingestUrl) => {
  const api = { Namespace: 'AWS/ApiGateway', Dimensions: [{ Name: 'ApiId', Value: { Ref: 'HttpApi' } }] };
  const url = (name) => ({ Namespace: 'AWS/Lambda', Dimensions: ofFunction(name).Dimensions });
  const ofUrl = { failed: 'Url5xxCount', refused: 'Url4xxCount', all: 'UrlRequestCount' };
  return [
    { name: 'Api', text: 'The HTTP API', writes: true, metrics: api, failed: '5xx', refused: '4xx', all: 'Count' },
    { name: 'QueryUrl', text: "The query function's URL", metrics: url('query'), ...ofUrl },
    ...(ingestUrl ? [{ name: 'IngestUrl', text: "The ingest function's URL", writes: true, metrics: url('ingest'), ...ofUrl }] : []),
  ];
};

// refusals is an alarm on the share of the requests that an entrance for writes refuses: a sender
// loses what is refused, but whoever queries sees the error.
const refusals = (entrance, actions) => {
  const sum = (Id, MetricName) => ({ Id, ReturnData: false, MetricStat: { Metric: { ...entrance.metrics, MetricName }, Period: 300, Stat: 'Sum' } });
  const share = { Id: 'share', ReturnData: true, Label: 'share of refused requests', Expression: '100 * refused / all' };
  const { Period, ...rest } = alarm(`${entrance.text} refuses most requests with 4xx: senders lose what it refuses.`, {}, actions).Properties;
  return {
    Type: 'AWS::CloudWatch::Alarm',
    Properties: { ...rest, Threshold: 50, Metrics: [sum('refused', entrance.refused), sum('all', entrance.all), share] },
  };
};

// budget notifies when the costs of the month are forecast to exceed their limit, and when they
// have reached 80 % of it. They are the costs of what has both tags. A change of the notifications
// replaces a budget, which therefore must get another name.
const budget = ({ dollars, subscribers }, stage) => {
  const hash = crypto.createHash('sha256').update(JSON.stringify(subscribers)).digest('hex').slice(0, 8);
  const tags = Object.entries({ service: 'promlake', stage }).map(([Key, value]) => ({ Tags: { Key, Values: [value] } }));
  const above = (NotificationType, Threshold) => ({
    Notification: { NotificationType, ComparisonOperator: 'GREATER_THAN', Threshold, ThresholdType: 'PERCENTAGE' },
    Subscribers: subscribers,
  });
  return {
    Type: 'AWS::Budgets::Budget',
    Properties: {
      Budget: {
        BudgetName: { 'Fn::Sub': `promlake-${stage}-\${AWS::Region}-${hash}` },
        BudgetType: 'COST',
        TimeUnit: 'MONTHLY',
        BudgetLimit: { Amount: dollars, Unit: 'USD' },
        Metrics: ['UnblendedCost'],
        FilterExpression: { And: tags },
      },
      NotificationsWithSubscribers: [above('FORECASTED', 100), above('ACTUAL', 80)],
    },
  };
};

module.exports = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  const stage = await resolveVariable('sls:stage');
  const actions = s.alarmActions;
  const Resources = {
    DeadLetterAlarm: alarm(
      'Writes could not be made segments; they wait in the dead-letter queue until they are redriven.',
      { ...ofQueue('DeadLetterQueue', 'ApproximateNumberOfMessagesVisible'), Threshold: 1, Period: 60, EvaluationPeriods: 1 },
      actions,
    ),
    WriteAgeAlarm: alarm(
      'Writes wait too long to become segments: they are safe and cannot be asked yet.',
      { ...ofQueue('WriteQueue', 'ApproximateAgeOfOldestMessage'), Threshold: s.alarmAgeSeconds, EvaluationPeriods: 1 },
      actions,
    ),
    // The plan function logs a line at every tick, with msg "planned", lag_seconds and
    // silent_seconds.
    LagFilter: ofLog('plan', 'CompactionLag', stage, 'planned', '$.lag_seconds', 'Seconds'),
    LagAlarm: alarm(
      'Closed windows do not become blocks, or nothing plans any more: queries become slower, nothing is lost.',
      {
        Namespace: `Promlake/${stage}`,
        MetricName: 'CompactionLag',
        Statistic: 'Minimum',
        Threshold: s.alarmLagSeconds,
        TreatMissingData: 'breaching',
      },
      actions,
    ),
    SilenceFilter: ofLog('plan', 'Silence', stage, 'planned', '$.silent_seconds', 'Seconds'),
    SilenceAlarm: alarm(
      'No sender has written for long, although one did before: see the senders, and the network between.',
      {
        Namespace: `Promlake/${stage}`,
        MetricName: 'Silence',
        Statistic: 'Minimum',
        Threshold: SILENCE_SECONDS,
        EvaluationPeriods: Math.ceil((s.alarmSilenceSeconds - SILENCE_SECONDS) / 300),
      },
      actions,
    ),
  };
  for (const [names, kind, text] of [
    [FAILING, 'Errors', 'fails: see its log group'],
    [THROTTLED, 'Throttles', "is throttled: the account's or its own concurrency is used up"],
  ]) {
    for (const name of names) {
      if (name === 'rules' && !s.rulesOn) continue;
      Resources[`${title(name)}${kind}Alarm`] = alarm(`The ${name} function ${text}.`, ofFunction(name, kind), actions);
    }
  }
  for (const entrance of entrances(s.ingestUrl)) {
    const failing = `${entrance.text} answers with 5xx: writes or queries fail, see the log groups of its functions.`;
    const failed = { ...entrance.metrics, MetricName: entrance.failed, Statistic: 'Sum', Threshold: 1 };
    Resources[`${entrance.name}FailuresAlarm`] = alarm(failing, failed, actions);
    if (entrance.writes) Resources[`${entrance.name}RefusalsAlarm`] = refusals(entrance, actions);
  }
  if (s.rulesOn) {
    // An invocation from the queue does not fail, because its message need not be delivered again.
    Resources.RulesFailuresFilter = ofLog('rules', 'RulesFailures', stage, 'evaluating rules failed', '1', 'Count');
    Resources.RulesFailuresAlarm = alarm(
      'Rules are not evaluated, or their results are not delivered: see the log group of the rules function.',
      { Namespace: `Promlake/${stage}`, MetricName: 'RulesFailures', Statistic: 'Sum', Threshold: 1 },
      actions,
    );
  }
  if (s.replicaStore) {
    // The function logs a line with msg "replicated" after each pass without an error.
    Resources.ReplicaFilter = ofLog('replicate', 'ReplicaLag', stage, 'replicated', '$.lag_seconds', 'Seconds');
    Resources.ReplicaAlarm = alarm(
      'The recovery point of the replica is old: what was written since is only in this region.',
      {
        Namespace: `Promlake/${stage}`,
        MetricName: 'ReplicaLag',
        Statistic: 'Minimum',
        Threshold: REPLICA_SECONDS,
        EvaluationPeriods: 2,
        TreatMissingData: 'breaching',
      },
      actions,
    );
  }
  if (s.budget) Resources.Budget = budget(s.budget, stage);
  return { Resources };
};
