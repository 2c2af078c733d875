{{- define "payfact.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 characters: "-processor" and a job's revision still fit in a name. */}}
{{- define "payfact.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "payfact.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "payfact.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Selectors are immutable: nothing may be added here. */}}
{{- define "payfact.selector" -}}
app.kubernetes.io/name: {{ include "payfact.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "payfact.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{ include "payfact.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/part-of: payfact
{{- end -}}

{{/* dict root, name, extra: labels of a pod. Without the chart's version: a new chart alone restarts nothing. */}}
{{- define "payfact.podLabels" -}}
{{- $own := include "payfact.selector" .root | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/component" .name -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "payfact" -}}
{{- toYaml (merge $own .extra) -}}
{{- end -}}

{{- define "payfact.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "payfact.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "payfact.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* ---- what each component is ---- */}}

{{/* Its binary and role, its database login, and what it reads. One place: environment, volumes and network follow. */}}
{{- define "payfact.components" -}}
webhook: {binary: payfact-ingest, role: webhook, user: webhook, accounts: true, keyring: true, redis: true, http: true}
relay: {binary: payfact-ingest, role: relay, accounts: true, keyring: true}
psp: {binary: payfact-ingest, role: psp, user: psp, accounts: true, keyring: true, calls: true}
processor: {binary: payfact-processor, user: processor, accounts: true, keyring: true}
recovery: {binary: payfact-recovery, user: recovery, accounts: true}
publisher: {binary: payfact-publisher, user: publisher}
{{- end -}}

{{/* The same with what the values leave out taken out, and "c": the component's values over the defaults. mergeOverwrite
     would keep a default where a component says 0, false or an empty list. */}}
{{- define "payfact.enabled" -}}
{{- $root := . -}}
{{- $out := dict -}}
{{- range $name, $what := include "payfact.components" . | fromYaml -}}
{{- $c := deepCopy $root.Values.defaults -}}
{{- range $key, $value := index $root.Values.components $name -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $c $key (mergeOverwrite (deepCopy (default dict (index $c $key))) $value) -}}
{{- else -}}
{{- $_ := set $c $key $value -}}
{{- end -}}
{{- end -}}
{{- if $c.enabled -}}
{{- if $what.user -}}
{{- $login := index $root.Values.postgres.users $what.user -}}
{{- $_ := set $what "user" (ternary $what.user "" (ne $login.name "")) -}}
{{- end -}}
{{- $_ := set $what "redis" (and $what.redis (ne $root.Values.redis.url "")) -}}
{{- $_ := set $what "redisPassword" (and $what.redis (ne $root.Values.redis.existingSecret "")) -}}
{{- $_ := set $what "ca" (and $what.calls (ne $root.Values.pspCa.existingConfigMap "")) -}}
{{- $_ := set $what "kafkaSecret" (default $root.Values.kafka.existingSecret $c.kafkaSecret) -}}
{{- $_ := set $what "c" $c -}}
{{- $_ := set $out $name $what -}}
{{- end -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{/* The jobs that run, in order. */}}
{{- define "payfact.jobs" -}}
{{- if ne .Values.migrations.mode "none" }}
migrate:
  mode: {{ .Values.migrations.mode }}
  weight: "-5"
  user: migrate
  args: [migrate]
{{- end }}
{{- if ne .Values.topics.mode "none" }}
topics:
  mode: {{ .Values.topics.mode }}
  weight: "-4"
  kafka: true
  kafkaSecret: {{ default .Values.kafka.existingSecret .Values.topics.kafkaSecret | quote }}
  args: [topics, "--partitions={{ .Values.kafka.partitions | int64 }}", "--replication={{ .Values.kafka.replication | int64 }}"]
{{- end }}
{{- end -}}

{{/* ---- settings ---- */}}

{{/* dict root, what: connection settings of a service or job, name without PAYFACT_ to value. */}}
{{- define "payfact.connections" -}}
{{- $values := .root.Values -}}
{{- $what := .what -}}
{{- $out := dict -}}
{{- if $what.kafka -}}
{{- $_ := set $out "KAFKA_BROKERS" $values.kafka.brokers -}}
{{- $_ := set $out "TOPIC_PREFIX" $values.kafka.topicPrefix -}}
{{- if $what.kafkaSecret -}}
{{- $_ := set $out "KAFKA_PROPERTIES_FILE" (printf "/etc/payfact/kafka/%s" $values.kafka.propertiesKey) -}}
{{- end -}}
{{- end -}}
{{- if $what.user -}}
{{- $login := index $values.postgres.users $what.user -}}
{{- $_ := set $out "PG_CONNINFO" (printf "%s user=%s" $values.postgres.conninfo $login.name) -}}
{{- $_ := set $out "PG_PASSWORD_FILE" "/etc/payfact/postgres/password" -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{/* dict root, what: every setting that the chart itself makes for a component. */}}
{{- define "payfact.ownSettings" -}}
{{- $values := .root.Values -}}
{{- $what := .what -}}
{{- $c := $what.c -}}
{{- $out := include "payfact.connections" (dict "root" .root "what" (set (deepCopy $what) "kafka" true)) | fromYaml -}}
{{- $_ := set $out "INSTANCE_ID" "$(POD_NAME)" -}}
{{- $_ := set $out "LOG_LEVEL" $c.logLevel -}}
{{- $_ := set $out "ADMIN_BIND" $c.bindAddress -}}
{{- $_ := set $out "ADMIN_PORT" "9464" -}}
{{- $_ := set $out "DRAIN_MS_MAX" ($c.drainMsMax | int64 | toString) -}}
{{- if $what.accounts -}}
{{- $_ := set $out "ACCOUNTS_FILE" "/etc/payfact/accounts/accounts.json" -}}
{{- $_ := set $out "SECRETS_DIR" "/etc/payfact/secrets" -}}
{{- end -}}
{{- if $what.keyring -}}
{{- $_ := set $out "KEYRING_FILE" "/etc/payfact/keyring/keyring" -}}
{{- end -}}
{{- if $what.redis -}}
{{- $_ := set $out "REDIS_URL" $values.redis.url -}}
{{- end -}}
{{- if $what.redisPassword -}}
{{- $_ := set $out "REDIS_PASSWORD_FILE" "/etc/payfact/redis/password" -}}
{{- end -}}
{{- if $what.http -}}
{{- $_ := set $out "HTTP_BIND" $c.bindAddress -}}
{{- $_ := set $out "HTTP_PORT" "8080" -}}
{{- end -}}
{{- if $what.ca -}}
{{- $_ := set $out "CA_FILE" (printf "/etc/payfact/ca/%s" $values.pspCa.key) -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{/* A number of a values file arrives as a float: 1048576 would be written 1.048576e+06. */}}
{{- define "payfact.text" -}}
{{- if kindIs "float64" . -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end -}}

{{/* dict root, what: all settings. A component's own settings were checked by payfact.validate. */}}
{{- define "payfact.settings" -}}
{{- $known := index (.root.Files.Get "files/settings.yaml" | fromYaml) .what.binary -}}
{{- $out := include "payfact.ownSettings" . | fromYaml -}}
{{- range $name, $value := .what.c.settings -}}
{{- if has $name $known -}}{{- $_ := set $out $name (include "payfact.text" $value) -}}{{- end -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{- define "payfact.envOf" -}}
{{- range $name, $value := . }}
- name: PAYFACT_{{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* ---- parts of a pod ---- */}}

{{- define "payfact.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "payfact.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* dict name, secret, key, path: one key of a secret as a volume. */}}
{{- define "payfact.secretVolume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0440
    {{- if .key }}
    items:
      - {key: {{ .key | quote }}, path: {{ .path }}}
    {{- end }}
{{- end -}}

{{/* dict root, what: volumes that a connection needs. Only this login's password is mounted. */}}
{{- define "payfact.connectionVolumes" -}}
{{- $values := .root.Values -}}
{{- if .what.kafkaSecret }}
{{ include "payfact.secretVolume" (dict "name" "kafka" "secret" .what.kafkaSecret) }}
{{- end }}
{{- if .what.user }}
{{- $login := index $values.postgres.users .what.user }}
{{ include "payfact.secretVolume" (dict "name" "postgres" "secret" $values.postgres.existingSecret "key" $login.passwordKey "path" "password") }}
{{- if $values.postgres.existingCaConfigMap }}
- name: postgres-ca
  configMap:
    name: {{ $values.postgres.existingCaConfigMap | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "payfact.connectionMounts" -}}
{{- if .what.kafkaSecret }}
- {name: kafka, mountPath: /etc/payfact/kafka, readOnly: true}
{{- end }}
{{- if .what.user }}
- {name: postgres, mountPath: /etc/payfact/postgres, readOnly: true}
{{- if .root.Values.postgres.existingCaConfigMap }}
- {name: postgres-ca, mountPath: /etc/payfact/postgres-ca, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}
