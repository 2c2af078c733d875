{{/* What the schema of the values cannot say. Everything that is wrong is told in one message. */}}
{{- define "payfact.validate" -}}
{{- $root := . -}}
{{- $enabled := include "payfact.enabled" . | fromYaml -}}
{{- $jobs := include "payfact.jobs" . | fromYaml -}}
{{- $problems := list -}}
{{- $missing := include "payfact.missing" (dict "root" $root "enabled" $enabled "jobs" $jobs) | fromYamlArray -}}
{{- if $missing -}}
{{- $problems = append $problems (printf "these values are required: %s" (join ", " $missing)) -}}
{{- end -}}
{{- range $name, $what := $enabled -}}
{{- $problems = concat $problems (include "payfact.wrongTimes" (dict "name" $name "c" $what.c) | fromYamlArray) -}}
{{- $problems = concat $problems (include "payfact.wrongSettings" (dict "root" $root "name" $name "what" $what) | fromYamlArray) -}}
{{- end -}}
{{- $problems = concat $problems (include "payfact.wrongDefaults" $root | fromYamlArray) -}}
{{- $problems = concat $problems (include "payfact.wrongAccounts" (dict "root" $root "enabled" $enabled) | fromYamlArray) -}}
{{- if $problems -}}
{{- fail (printf "\n  %s\n" (join "\n  " $problems)) -}}
{{- end -}}
{{- end -}}

{{/* Names of values that are empty and that something enabled needs. */}}
{{- define "payfact.missing" -}}
{{- $values := .root.Values -}}
{{- $need := dict -}}
{{- range concat (values .enabled) (values .jobs) -}}
{{- if or .binary .kafka -}}{{- $_ := set $need "kafka.brokers" $values.kafka.brokers -}}{{- end -}}
{{- if .user -}}
{{- $_ := set $need "postgres.conninfo" $values.postgres.conninfo -}}
{{- $_ := set $need "postgres.existingSecret" $values.postgres.existingSecret -}}
{{- end -}}
{{- if .keyring -}}{{- $_ := set $need "keyring.existingSecret" $values.keyring.existingSecret -}}{{- end -}}
{{- if .accounts -}}
{{- $_ := set $need "accounts.json or accounts.existingConfigMap" (default $values.accounts.json $values.accounts.existingConfigMap) -}}
{{- $_ := set $need "accounts.existingSecret" $values.accounts.existingSecret -}}
{{- end -}}
{{- end -}}
{{- $missing := list -}}
{{- range $name, $value := $need -}}
{{- if not $value -}}{{- $missing = append $missing $name -}}{{- end -}}
{{- end -}}
{{- toYaml $missing -}}
{{- end -}}

{{- define "payfact.wrongTimes" -}}
{{- $c := .c -}}
{{- $problems := list -}}
{{- $stop := add (int64 $c.drainMsMax) (mul (int64 $c.preStopSeconds) 1000) -}}
{{- if le (mul (int64 $c.terminationGracePeriodSeconds) 1000) $stop -}}
{{- $problems = append $problems (printf "components.%s: terminationGracePeriodSeconds (%d s) must be longer than drainMsMax and preStopSeconds together (%d ms)" .name (int64 $c.terminationGracePeriodSeconds) $stop) -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end -}}

{{/* A setting that the program does not know stops its start; one that is set twice hides the other. */}}
{{- define "payfact.wrongSettings" -}}
{{- $what := .what -}}
{{- $name := .name -}}
{{- $known := index (.root.Files.Get "files/settings.yaml" | fromYaml) $what.binary -}}
{{- $own := include "payfact.ownSettings" . | fromYaml -}}
{{- $problems := list -}}
{{- range $key, $_ := (index .root.Values.components $name).settings -}}
{{- if not (has $key $known) -}}
{{- $problems = append $problems (printf "components.%s.settings.%s: %s does not know it" $name $key $what.binary) -}}
{{- end -}}
{{- end -}}
{{- $names := list "POD_NAME" -}}
{{- range $key, $_ := $own -}}{{- $names = append $names (printf "PAYFACT_%s" $key) -}}{{- end -}}
{{- range $key, $_ := $what.c.settings -}}
{{- if hasKey $own $key -}}
{{- $problems = append $problems (printf "components.%s: the chart sets PAYFACT_%s itself: use its value, not settings" $name $key) -}}
{{- else if has $key $known -}}
{{- $names = append $names (printf "PAYFACT_%s" $key) -}}
{{- end -}}
{{- end -}}
{{- range $what.c.extraEnv -}}
{{- if has .name $names -}}
{{- $problems = append $problems (printf "components.%s: extraEnv sets %s, which is set already" $name .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end -}}

{{/* A default goes to those who know it: somebody must. */}}
{{- define "payfact.wrongDefaults" -}}
{{- $all := list -}}
{{- range .Files.Get "files/settings.yaml" | fromYaml -}}{{- $all = concat $all . -}}{{- end -}}
{{- $problems := list -}}
{{- range $key, $_ := .Values.defaults.settings -}}
{{- if not (has $key $all) -}}
{{- $problems = append $problems (printf "defaults.settings.%s: no service knows it" $key) -}}
{{- end -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end -}}

{{/* accounts.json itself is checked by the programs (--check-config); here only what the chart has to do with it. */}}
{{- define "payfact.wrongAccounts" -}}
{{- $values := .root.Values -}}
{{- $problems := list -}}
{{- if and $values.accounts.json (not $values.accounts.existingConfigMap) -}}
{{- $accounts := fromJson $values.accounts.json -}}
{{- if hasKey $accounts "Error" -}}
{{- $problems = append $problems (printf "accounts.json: %s" $accounts.Error) -}}
{{- else if hasKey .enabled "webhook" -}}
{{- range $accounts.psp_accounts -}}
{{- if and (eq (default "" .answers) "strict") (not $.enabled.webhook.user) -}}
{{- $problems = append $problems (printf "accounts.json: account %s has strict answers, for which the webhook needs postgres.users.webhook.name" .id) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end -}}
