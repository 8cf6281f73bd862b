{{- define "promlake.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name }}{{ .Release.Name }}
{{- else }}{{ printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) }}
{{- end }}
{{- end }}

{{- /* The labels of all objects. */ -}}
{{- define "promlake.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "promlake.selector" . }}
{{- end }}

{{- /* The labels that select the pods of all roles. They never change. */ -}}
{{- define "promlake.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "promlake.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create }}{{ include "promlake.fullname" . }}
{{- else }}default
{{- end }}
{{- end }}

{{- define "promlake.claim" -}}
{{- default (include "promlake.fullname" .) .Values.persistence.existingClaim }}
{{- end }}

{{- /* The roles with their names, and the flags that make them, as JSON. Values that contradict
each other are refused here, because every template calls it or a template that does. */ -}}
{{- define "promlake.roles" -}}
{{- $name := include "promlake.fullname" . }}
{{- if eq .Values.mode "single" }}
{{- if not (or .Values.store.url .Values.persistence.enabled) }}{{ fail "mode single needs persistence.enabled or store.url" }}{{ end }}
{{- dict "single" (dict "name" $name "args" list "lone" true) | toJson }}
{{- else }}
{{- if or (not .Values.store.url) (hasPrefix "file:" .Values.store.url) }}{{ fail "mode roles needs the URL of a bucket in store.url" }}{{ end }}
{{- $served := list "--no-compactor.enabled" "--compactor.recent-bytes=0" "--no-ruler.evaluate" }}
{{- dict
  "ingest" (dict "name" (print $name "-ingest") "args" $served)
  "query" (dict "name" (print $name "-query") "args" $served)
  "compact" (dict "name" (print $name "-compact") "args" (list "--no-ruler.evaluate"))
  "rules" (dict "name" (print $name "-rules") "args" (list "--no-compactor.enabled" "--compactor.recent-bytes=0") "lone" true)
  | toJson }}
{{- end }}
{{- end }}

{{- /* The paths that each role serves to the outside, as JSON. Every other path goes to query. */ -}}
{{- define "promlake.paths" -}}
{{- $write := list "/api/v1/write" "/api/v1/push" "/api/v1/import" "/api/v1/otlp" "/api/v1/upload" }}
{{- $rules := list "/api/v1/rules" "/api/v1/alerts" "/api/v1/alertmanagers" "/api/v1/targets" "/api/v1/scrape_pools" "/config/v1/rules" }}
{{- $paths := dict "query" (list "/") }}
{{- $_ := set $paths "rules" $rules }}
{{- range $rules }}{{ $_ := set $paths "rules" (append $paths.rules (print "/prometheus" .)) }}{{ end }}
{{- $_ := set $paths "ingest" (concat $write (list "/api/v1/validate" "/api/v2" "/api/v3/write_lp" "/api/put" "/write" "/query" "/ping"
  "/influx" "/datadog" "/opentsdb" "/otlp" "/opentelemetry" "/v1/metrics" "/metrics/job" "/metrics/job@base64")) }}
{{- range $write }}{{ $_ := set $paths "ingest" (append $paths.ingest (print "/prometheus" .)) }}{{ end }}
{{- $all := dict }}
{{- if eq .Values.mode "single" }}{{ $_ := set $all "single" (list "/") }}{{ else }}{{ $all = $paths }}{{ end }}
{{- toJson $all }}
{{- end }}
