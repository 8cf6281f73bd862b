'use strict';

// The settings of serverless.yml: its checked parameters, in the types that CloudFormation
// requires, and derived values. An invalid parameter stops packaging with an error that names it,
// its value and the valid ones. serverless.yml explains each parameter.

const yaml = require('js-yaml');

const NO_VALUE = { Ref: 'AWS::NoValue' };
const API_URL = { 'Fn::Sub': 'https://${HttpApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}' };

const HTTP_API_SECONDS = 30; // API Gateway waits no longer for a function
const JOB_SECONDS = 15 * 60; // catalog.MaxJobAge: an older job may not commit
const DELETION_SECONDS = 15 * 60; // least deletion-delay-minutes: a longer query may miss deleted objects
const AFTER_SECONDS = 5; // of a function's time, reserved for the end of a query
const COMMIT_SECONDS = 30; // of a function's time, reserved for the commit after a job's deadline

const VERSION_DAYS = 7; // deleted and replaced objects stay, with versioning=on

const LOG_DAYS = [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 2192, 2557, 2922, 3288, 3653];
const PERIOD = '(0|(?=\\d)(\\d+y)?(\\d+w)?(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?)'; // as Prometheus writes durations
const TAG = '(?!aws:|(service|stage)=)[\\w.:/@+-]{1,128}=[\\w.:/@+-]{0,256}'; // what every service takes
const ID = '(?:[0-9a-f]{8}|[0-9a-f]{17})'; // of subnets and security groups
// The configurations of CodeDeploy, without CodeDeployDefault.Lambda.
const CANARY = 'AllAtOnce|Canary10Percent(5|10|15|30)Minutes|Linear10PercentEvery(1Minute|(2|3|10)Minutes)';
const EMAIL = '[^@,\\s]+@[^@,\\s]+';

// A check returns the typed value of a parameter's text, or nothing if the text is invalid.
const integer = (least, most) => ({
  want: `a whole number from ${least} to ${most}`,
  check: (text) => (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined),
});
const oneOf = (...choices) => ({
  want: `one of ${choices.join(', ')}`,
  check: (text) => choices.find((c) => String(c) === text),
});
const matching = (pattern, want) => ({ want, check: (text) => (new RegExp(`^(${pattern})$`).test(text) ? text : undefined) });
const optional = ({ want, check }) => ({ want: `${want}, or nothing`, check: (text) => (text === '' ? '' : check(text)) });

// relabeling is the YAML text of relabel configurations, which the function checks completely. Its
// length is bounded because Lambda takes 4 KB of variables.
const RELABEL_KEYS = ['source_labels', 'separator', 'regex', 'modulus', 'target_label', 'replacement', 'action'];
const RELABEL_BYTES = 2048;
const relabeling = {
  want: `a YAML list of Prometheus' alert_relabel_configs with the keys ${RELABEL_KEYS.join(', ')}, of at most ${RELABEL_BYTES} bytes`,
  check: (text) => {
    let list;
    try {
      list = yaml.load(text);
    } catch {
      return undefined;
    }
    const entry = (e) => e !== null && typeof e === 'object' && !Array.isArray(e) && Object.keys(e).every((k) => RELABEL_KEYS.includes(k));
    return Array.isArray(list) && list.every(entry) && Buffer.byteLength(text) <= RELABEL_BYTES ? text : undefined;
  },
};

const PARAMETERS = {
  architecture: oneOf('arm64', 'x86_64'),
  mode: oneOf('buffered', 'direct', 'grouped'),
  'capacity-provider': optional(matching('arn:aws[\\w-]*:lambda:[\\w-]+:\\d{12}:capacity-provider:[\\w-]+', 'the ARN of a capacity provider')),
  'grouped-requests': integer(2, 1600),

  auth: oneOf('tokens', 'iam', 'none'),
  'url-auth': optional(oneOf('tokens', 'iam')),
  tokens: optional(matching('(/[\\w.-]+)+', 'the name of an SSM parameter that begins with /')),
  'self-metrics': matching('on|off|https?://.+', 'on, off or a URL'),
  'self-token': matching('(/[\\w.-]+)+', 'the name of an SSM parameter that begins with /'),

  'runtime-config': oneOf('on', 'off'),

  rules: oneOf('on', 'off'),
  'alertmanager-url': optional(matching('https?://[^,\\s]+(,https?://[^,\\s]+)*', 'URLs, separated by commas')),
  'webhook-url': optional(matching('https?://[^,\\s]+|(/[\\w.-]+)+', 'a URL, or the name of an SSM parameter that begins with /')),
  'sns-topic': optional(matching('arn:aws[\\w-]*:sns:[\\w-]+:\\d{12}:[\\w-]+(\\.fifo)?', 'the ARN of an SNS topic')),
  'rules-repeat-hours': integer(1, 168),
  'rules-external-labels': optional(matching('[^=,\\s]+=[^=,\\s]+(,[^=,\\s]+=[^=,\\s]+)*', 'NAME=VALUE,... such as cluster=prod')),
  'rules-alert-relabel-configs': optional(relabeling),
  'rules-delay': integer(0, 240),

  iceberg: oneOf('on', 'off'),
  'deletion-delay-minutes': integer(DELETION_SECONDS / 60, 7 * 1440),
  'replica-bucket': optional(matching('[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]', 'the name of a bucket')),
  'replica-region': optional(matching('[a-z]{2,}(-[a-z]+)+-\\d', 'a region such as eu-west-1')),
  retention: matching(PERIOD, 'a period such as 90d, 0 for ever'),
  versioning: oneOf('on', 'off'),
  'kms-key': optional(matching('arn:aws[\\w-]*:kms:[\\w-]+:\\d{12}:key/[\\w-]+', 'the ARN of a key of KMS')),
  'permissions-boundary': optional(matching('arn:aws[\\w-]*:iam::(\\d{12}|aws):policy/[\\w+=,.@/-]+', 'the ARN of a policy of IAM')),
  'vpc-subnets': optional(matching(`subnet-${ID}(,subnet-${ID}){0,15}`, 'at most 16 subnets such as subnet-0a1b2c3d,subnet-2c3d4e5f')),
  'vpc-security-groups': optional(matching(`sg-${ID}(,sg-${ID}){0,4}`, 'at most 5 security groups such as sg-0a1b2c3d')),
  'api-rate': optional(integer(1, 10000)),
  'api-burst': optional(integer(1, 5000)),
  domain: optional(matching('([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}', 'a domain such as metrics.example.com')),
  certificate: optional(matching('arn:aws[\\w-]*:acm:[\\w-]+:\\d{12}:certificate/[\\w-]+', 'the ARN of a certificate of ACM')),
  'access-logs': oneOf('on', 'off'),
  tracing: oneOf('on', 'off'),
  'tenant-retention': optional(matching(`[^=,\\s]+=${PERIOD}(,[^=,\\s]+=${PERIOD})*`, 'TENANT=PERIOD,... such as team-a=30d')),

  'ingest-memory': integer(128, 10240),
  'flush-memory': integer(256, 10240),
  'plan-memory': integer(256, 10240),
  'compact-memory': integer(512, 10240),
  'query-memory': integer(512, 10240),
  'rules-memory': integer(512, 10240),
  'replicate-memory': integer(256, 10240),

  'ingest-timeout': integer(5, HTTP_API_SECONDS - 1),
  'flush-timeout': integer(10, 900),
  'plan-timeout': integer(30, 900),
  'compact-timeout': integer(120, JOB_SECONDS),
  'query-timeout': integer(10, DELETION_SECONDS - 60),
  'rules-timeout': integer(10, 59),
  'replicate-timeout': integer(10, 59),

  'compact-tmp': integer(512, 10240),
  'query-tmp': integer(512, 10240),
  'replicate-tmp': integer(512, 10240),
  'query-divide': optional(integer(2, 100)),
  'query-max-dollars': matching('\\d+(\\.\\d+)?', 'dollars such as 0.01'),

  'ingest-concurrency': optional(integer(1, 100000)),
  'query-concurrency': optional(integer(1, 100000)),
  'flush-concurrency': integer(2, 1000),
  'compact-concurrency': integer(2, 1000),
  'rules-concurrency': integer(2, 1000),
  'batch-size': integer(1, 10000),
  'batch-seconds': integer(0, 300),
  'max-receives': integer(3, 1000),

  canary: optional(matching(CANARY, 'AllAtOnce, Canary10Percent30Minutes or another of docs/upgrading-aws.md')),
  'log-level': oneOf('debug', 'info', 'warn', 'error'),
  'system-log-level': oneOf('debug', 'info', 'warn'),
  'log-retention-days': oneOf(...LOG_DAYS),
  tags: optional(matching(`${TAG}(,${TAG}){0,39}`, 'at most 40 of NAME=VALUE,... other than service and stage, such as team=x')),
  'alarm-topic': optional(matching('arn:aws[\\w-]*:sns:[\\w-]+:\\d{12}:[\\w.-]+', 'the ARN of an SNS topic')),
  'alarm-lag-seconds': integer(60, 30 * 86400),
  'alarm-age-seconds': integer(60, 14 * 86400),
  'alarm-silence-seconds': integer(1200, 86400),
  'budget-dollars': optional({ want: 'dollars a month such as 50', check: (text) => (/^\d+(\.\d\d)?$/.test(text) && Number(text)) || undefined }),
  'budget-email': optional(matching(`${EMAIL}(,${EMAIL}){0,9}`, 'at most 10 addresses, separated by commas')),
};

// What a function in a VPC needs (the policy AWSLambdaVPCAccessExecutionRole).
const NETWORK = [
  ...['CreateNetworkInterface', 'DescribeNetworkInterfaces', 'DescribeSubnets', 'DeleteNetworkInterface'],
  ...['AssignPrivateIpAddresses', 'UnassignPrivateIpAddresses'],
].map((action) => `ec2:${action}`);

// SECRET are parameters whose values errors do not repeat.
const SECRET = ['alertmanager-url', 'webhook-url'];
const shown = (name, value) => (SECRET.includes(name) ? 'another text' : `"${value}"`);

const camel = (name) => name.replace(/-(.)/g, (_, c) => c.toUpperCase());

const read = (name, value) => {
  const { want, check } = PARAMETERS[name];
  const typed = check(String(value));
  if (typed === undefined) throw new Error(`parameter ${name}: want ${want}, got ${shown(name, value)}`);
  return typed;
};

// mayRead lets a role read SSM parameters by their names.
const mayRead = (names) => {
  const arn = (name) => ({ 'Fn::Sub': `arn:\${AWS::Partition}:ssm:\${AWS::Region}:\${AWS::AccountId}:parameter${name}` });
  return names.length === 0 ? [] : [{ Effect: 'Allow', Action: ['ssm:GetParameter'], Resource: names.map(arn) }];
};

// capacity selects where the ingest function runs: in an environment for each request, or on
// instances that serve several at once.
const capacity = (p) => {
  if ((p.mode === 'grouped') !== (p.capacityProvider !== '')) {
    throw new Error(`parameter capacity-provider: want one with mode=grouped and with no other, got "${p.capacityProvider}" with mode=${p.mode}`);
  }
  if (p.mode !== 'grouped') return NO_VALUE;
  return {
    LambdaManagedInstancesCapacityProviderConfig: {
      CapacityProviderArn: p.capacityProvider,
      PerExecutionEnvironmentMaxConcurrency: p.groupedRequests,
    },
  };
};

// document returns the names of the parameter with the document of tokens: one or none.
const document = (p) => (p.auth === 'none' || p.tokens === '' ? [] : [p.tokens]);

// access selects the authentication of the API and of the functions' URLs: tokens, which the
// programs check; signed requests, which AWS checks; or none. With a document, the programs look up
// the tenants of tokens and of signers in it.
const access = (p) => {
  if (p.auth === 'none' && p.urlAuth !== '') throw new Error(`parameter url-auth: want nothing with auth=none, got "${p.urlAuth}"`);
  const iam = (p.urlAuth || p.auth) === 'iam';
  const url = (invokeMode) => ({ invokeMode, ...(iam && { authorizer: 'aws_iam' }) });
  return {
    authorizer: p.auth === 'iam' ? { type: 'aws_iam' } : '',
    // A URL invokes a function's unpublished version, but Managed Instances run only published
    // ones.
    ingestUrl: p.mode === 'grouped' ? false : url('BUFFERED'),
    queryUrl: url('RESPONSE_STREAM'),
    tokensSource: document(p).map((name) => `ssm:${name}`)[0] ?? NO_VALUE,
  };
};

// selfMetrics selects the target of the functions' own metrics. The ingest function ingests its own
// metrics directly, without a token.
const selfMetrics = (p) => {
  const to = p.selfMetrics;
  if (to === 'off') return { selfUrl: NO_VALUE, ingestSelfUrl: NO_VALUE, selfTokenSource: NO_VALUE, ingestSelfTokenSource: NO_VALUE };
  if (to === 'on' && p.auth === 'iam') throw new Error('parameter self-metrics: want off or a URL with auth=iam, since functions sign nothing, got "on"');
  const token = to === 'on' && p.auth === 'none' ? NO_VALUE : `ssm:${p.selfToken}`;
  if (to === 'on') return { selfUrl: API_URL, ingestSelfUrl: 'here', selfTokenSource: token, ingestSelfTokenSource: NO_VALUE };
  return { selfUrl: to, ingestSelfUrl: to, selfTokenSource: token, ingestSelfTokenSource: token };
};

// logging configures CloudWatch. The programs filter by log-level themselves and write JSON, which
// Lambda passes on unchanged. The application level is TRACE because Lambda assumes INFO for lines
// without a level, such as those of a panic, and would drop them above it.
const logging = (p) => ({ LogFormat: 'JSON', ApplicationLogLevel: 'TRACE', SystemLogLevel: p.systemLogLevel.toUpperCase() });

// The fields of a line of the access log. Authorization and query texts are not among them.
const ACCESS_LOG = {
  time: '$context.requestTimeEpoch',
  id: '$context.requestId',
  ip: '$context.identity.sourceIp',
  agent: '$context.identity.userAgent',
  caller: '$context.identity.userArn',
  route: '$context.routeKey',
  status: '$context.status',
  bytes: '$context.responseLength',
  ms: '$context.responseLatency',
  error: '$context.integrationErrorMessage',
};

// guarded are the key, the network, the limits and the domain that an account requires.
const guarded = (p) => {
  if ((p.vpcSubnets === '') !== (p.vpcSecurityGroups === '')) throw new Error('parameters vpc-subnets, vpc-security-groups: want both or none');
  if ((p.apiRate === '') !== (p.apiBurst === '')) throw new Error('parameters api-rate, api-burst: want both or none');
  if ((p.domain === '') !== (p.certificate === '')) throw new Error('parameters domain, certificate: want both or none');
  const key = p.kmsKey || NO_VALUE;
  const inVpc = p.vpcSubnets !== '';
  return {
    noValue: NO_VALUE,
    key,
    bucketEncryption: p.kmsKey // with a key for the bucket, hardly any request goes to KMS
      ? { ServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: key }, BucketKeyEnabled: true }
      : { ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } },
    queueEncryption: { SqsManagedSseEnabled: p.kmsKey ? NO_VALUE : true, KmsMasterKeyId: key },
    vpc: inVpc ? { SubnetIds: p.vpcSubnets.split(','), SecurityGroupIds: p.vpcSecurityGroups.split(',') } : NO_VALUE,
    tracing: p.tracing === 'on' ? { Mode: 'Active' } : NO_VALUE,
    // Lambda itself uses the functions' roles for their network interfaces and traces.
    allMay: [
      ...(p.kmsKey ? [{ Effect: 'Allow', Action: ['kms:Decrypt', 'kms:GenerateDataKey'], Resource: [p.kmsKey] }] : []),
      ...(inVpc ? [{ Effect: 'Allow', Action: NETWORK, Resource: ['*'] }] : []),
      ...(p.tracing === 'on' ? [{ Effect: 'Allow', Action: ['xray:PutTraceSegments', 'xray:PutTelemetryRecords'], Resource: ['*'] }] : []),
    ],
    apiLimits: { DetailedMetricsEnabled: false, ThrottlingRateLimit: p.apiRate || NO_VALUE, ThrottlingBurstLimit: p.apiBurst || NO_VALUE },
    publicUrl: p.domain === '' ? API_URL : `https://${p.domain}`,
    accessLog: p.accessLogs === 'on' && { format: JSON.stringify(ACCESS_LOG) },
  };
};

// receiver selects who gets the notifications of rules: Alertmanagers, a webhook or a topic.
const receiver = (p) => {
  const given = ['alertmanager-url', 'webhook-url', 'sns-topic'].filter((name) => p[camel(name)] !== '');
  if (given.length > 1) throw new Error(`parameters ${given.join(', ')}: want one of them`);
  const parameter = p.webhookUrl.startsWith('/');
  return {
    alertmanagers: p.alertmanagerUrl || NO_VALUE,
    webhook: (parameter ? `ssm:${p.webhookUrl}` : p.webhookUrl) || NO_VALUE,
    snsTopicArn: p.snsTopic || NO_VALUE,
    rulesRepeat: `${p.rulesRepeatHours}h`,
    rulesMayNotify: [
      ...(parameter ? mayRead([p.webhookUrl]) : []),
      ...(p.snsTopic === '' ? [] : [{ Effect: 'Allow', Action: ['sns:Publish'], Resource: [p.snsTopic] }]),
    ],
  };
};

// budget is what the stage may cost a month, and who learns that it is about to cost more.
const budget = (p) => {
  const subscribers = [
    ...(p.alarmTopic === '' ? [] : [{ SubscriptionType: 'SNS', Address: p.alarmTopic }]),
    ...p.budgetEmail.split(',').filter(Boolean).map((Address) => ({ SubscriptionType: 'EMAIL', Address })),
  ];
  if (p.budgetDollars === '' && p.budgetEmail !== '') throw new Error('parameter budget-email: want budget-dollars, too');
  if (p.budgetDollars !== '' && subscribers.length === 0) throw new Error('parameter budget-dollars: want budget-email or alarm-topic, too');
  return p.budgetDollars !== '' && { dollars: p.budgetDollars, subscribers };
};

const derive = (p) => {
  for (const name of ['alertmanager-url', 'webhook-url', 'sns-topic', 'rules-external-labels', 'rules-alert-relabel-configs']) {
    if (p.rules === 'off' && p[camel(name)] !== '') throw new Error(`parameter ${name}: want rules=on, too, got ${shown(name, p[camel(name)])}`);
  }
  if (p.queryConcurrency !== '' && p.queryDivide >= p.queryConcurrency) {
    throw new Error(`parameter query-divide: want less than query-concurrency, of which the query itself takes one, got "${p.queryDivide}"`);
  }
  if (p.canary !== '' && p.mode === 'grouped') {
    throw new Error(`parameter canary: want nothing with mode=grouped, whose versions CloudFormation publishes, got "${p.canary}"`);
  }
  if ((p.replicaBucket === '') !== (p.replicaRegion === '')) throw new Error('parameters replica-bucket, replica-region: want both or none');
  const self = selfMetrics(p);
  const own = (source) => (source === NO_VALUE ? [] : [p.selfToken]);
  return {
    ...access(p),
    ...self,
    ...guarded(p),
    capacity: capacity(p),
    logging: logging(p),
    ingestMayRead: mayRead([...document(p), ...own(self.ingestSelfTokenSource)]),
    queryMayRead: mayRead([...document(p), ...own(self.selfTokenSource)]),
    othersMayRead: mayRead(own(self.selfTokenSource)),
    runtimeConfigFile: p.runtimeConfig === 'on' ? 'store' : NO_VALUE,
    rulesOn: p.rules === 'on',
    ...receiver(p),
    rulesExternalLabels: p.rulesExternalLabels || NO_VALUE,
    rulesAlertRelabelConfigs: p.rulesAlertRelabelConfigs || NO_VALUE,
    // The API routes rules to their function, but the URL of the query function does not.
    rulerUrl: p.rules === 'on' ? API_URL : NO_VALUE,
    publishIceberg: p.iceberg === 'on' ? 'true' : NO_VALUE,
    deletionDelay: `${p.deletionDelayMinutes}m`,
    replicaStore: p.replicaBucket && `s3://${p.replicaBucket}?region=${p.replicaRegion}`,
    tenantRetention: p.tenantRetention || NO_VALUE,
    bucketVersioning: p.versioning === 'on' ? { Status: 'Enabled' } : NO_VALUE,
    versionDays: p.versioning === 'on' ? VERSION_DAYS : 1,
    ingestConcurrency: p.ingestConcurrency || NO_VALUE,
    queryConcurrency: p.queryConcurrency || NO_VALUE,
    queryWorkers: p.queryDivide ? 'lambda:self' : NO_VALUE,
    queryInvocations: p.queryDivide ? String(p.queryDivide) : NO_VALUE,
    queryLimit: `${p.queryTimeout - AFTER_SECONDS}s`,
    queryCache: `${Math.floor(p.queryTmp * 0.75)}MiB`, // the rest is for DuckDB's temporary files
    // The planner limits jobs to the memory of a worker: a third of it for sources, as much again
    // for garbage, the rest for the block.
    jobMemory: `${Math.floor(p.compactMemory / 3)}MiB`,
    jobLimit: `${p.compactTimeout - COMMIT_SECONDS}s`,
    jobSeconds: JOB_SECONDS,
    queuedWrites: String(p.mode === 'buffered'),
    // Lambda refuses a mapping if this is less than the function's time; the messages of a batch
    // wait for its window first. AWS recommends six times the function's time, so that a batch of
    // a throttled function does not run out of deliveries. This queue allows hundreds instead, so
    // that the messages of a function that was killed are delivered again soon.
    writeVisibility: p.flushTimeout + p.batchSeconds,
    budget: budget(p),
    alarmActions: p.alarmTopic === '' ? [] : [p.alarmTopic],
  };
};

// The result also has, as parameters, the texts that changes.js reads from the deployed template:
// given are those of the command line, values all of them.
module.exports = async ({ options, resolveVariable }) => {
  const given = {};
  for (const parameter of [options?.param ?? []].flat()) {
    const [name, ...value] = String(parameter).split('=');
    if (!(name in PARAMETERS)) throw new Error(`parameter ${name}: not known; there are ${Object.keys(PARAMETERS).join(', ')}`);
    if (name !== 'architecture') given[name] = value.join('=');
  }
  const p = {};
  const values = {};
  const stage = await resolveVariable('sls:stage');
  for (const name of Object.keys(PARAMETERS)) {
    values[name] = String(await resolveVariable(`param:${name}`));
    // Read after auth and url-auth.
    if (name === 'tokens' && values.tokens === '' && [p.auth, p.urlAuth].includes('tokens')) values.tokens = `/promlake/${stage}/tokens`;
    p[camel(name)] = read(name, values[name]);
  }
  const tags = Object.fromEntries(p.tags.split(',').filter(Boolean).map((tag) => tag.split('=')));
  const stackTags = { service: 'promlake', stage, ...tags };
  return { ...p, ...derive(p), stackTags, parameters: { given, values } };
};

module.exports.shown = shown;
