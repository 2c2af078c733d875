{{- define "payfact.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "payfact.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "payfact.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "payfact.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "payfact.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "payfact.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: payfact
{{- end -}}

{{- define "payfact.selector" -}}
app.kubernetes.io/name: {{ include "payfact.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
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

{{/* Everything that is missing, in one message. */}}
{{- define "payfact.required" -}}
{{- $missing := list -}}
{{- if not .Values.kafka.brokers -}}{{- $missing = append $missing "kafka.brokers" -}}{{- end -}}
{{- if not .Values.postgres.conninfo -}}{{- $missing = append $missing "postgres.conninfo" -}}{{- end -}}
{{- if not .Values.postgres.existingSecret -}}{{- $missing = append $missing "postgres.existingSecret" -}}{{- end -}}
{{- if not .Values.keyring.existingSecret -}}{{- $missing = append $missing "keyring.existingSecret" -}}{{- end -}}
{{- if not (or .Values.accounts.json .Values.accounts.existingConfigMap) -}}{{- $missing = append $missing "accounts.json or accounts.existingConfigMap" -}}{{- end -}}
{{- if not .Values.accounts.existingSecret -}}{{- $missing = append $missing "accounts.existingSecret" -}}{{- end -}}
{{- if $missing -}}{{- fail (printf "these values are required: %s" (join ", " $missing)) -}}{{- end -}}
{{- end -}}

{{/* What each component is: its binary, its role, its database login, and what it reads. */}}
{{- define "payfact.components" -}}
webhook: {binary: payfact-ingest, role: webhook, user: webhook, accounts: true, keyring: true, redis: true, http: true}
relay: {binary: payfact-ingest, role: relay, accounts: true, keyring: true}
psp: {binary: payfact-ingest, role: psp, user: psp, accounts: true, keyring: true, ca: true}
processor: {binary: payfact-processor, user: processor, accounts: true, keyring: true}
recovery: {binary: payfact-recovery, user: recovery, accounts: true}
publisher: {binary: payfact-publisher, user: publisher}
{{- end -}}

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

{{- define "payfact.kafkaEnv" -}}
- name: PAYFACT_KAFKA_BROKERS
  value: {{ .Values.kafka.brokers | quote }}
- name: PAYFACT_TOPIC_PREFIX
  value: {{ .Values.kafka.topicPrefix | quote }}
{{- if .Values.kafka.existingSecret }}
- name: PAYFACT_KAFKA_PROPERTIES_FILE
  value: /etc/payfact/kafka/{{ .Values.kafka.propertiesKey }}
{{- end }}
{{- end -}}

{{/* dict root, user */}}
{{- define "payfact.pgEnv" -}}
{{- $user := index .root.Values.postgres.users .user -}}
- name: PAYFACT_PG_CONNINFO
  value: {{ printf "%s user=%s" .root.Values.postgres.conninfo $user.name | quote }}
- name: PAYFACT_PG_PASSWORD_FILE
  value: /etc/payfact/postgres/password
{{- end -}}

{{/* dict root, user: only this login's password is mounted. */}}
{{- define "payfact.pgVolume" -}}
{{- $user := index .root.Values.postgres.users .user -}}
- name: postgres
  secret:
    secretName: {{ .root.Values.postgres.existingSecret }}
    defaultMode: 0440
    items:
      - {key: {{ $user.passwordKey | quote }}, path: password}
{{- end -}}

{{- define "payfact.kafkaVolume" -}}
{{- if .Values.kafka.existingSecret }}
- name: kafka
  secret:
    secretName: {{ .Values.kafka.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "payfact.kafkaMount" -}}
{{- if .Values.kafka.existingSecret }}
- {name: kafka, mountPath: /etc/payfact/kafka, readOnly: true}
{{- end }}
{{- end -}}
