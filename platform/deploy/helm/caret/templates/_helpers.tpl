{{/* Names, labels and parts that all pods share. Each template takes {root, component}, or the root alone. */}}

{{- define "caret.labels" -}}
{{ include "caret.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "caret.selector" -}}
app.kubernetes.io/name: caret
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* An image's name; the digest overrides the tag. {root, image} */}}
{{- define "caret.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "caret.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "caret.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "caret.spread" -}}
topologySpreadConstraints:
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "caret.selector" $ | nindent 8 }}
        {{- with $.pool }}
        caret/pool: {{ . }}
        {{- end }}
{{- end }}
{{- end }}

{{/* Selects the nodes for a pod. {nodeSelector, tolerations} */}}
{{- define "caret.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Environment of every process of Caret. */}}
{{- define "caret.environment" -}}
- {name: CARET_HOME, value: /var/lib/caret}
- {name: CARET_REGION, value: {{ .Values.region | quote }}}
- {name: CARET_ROOT_SECRET_FILE, value: /run/caret/secrets/root-secret}
- {name: REDIS_URL_FILE, value: /run/caret/secrets/redis-url}
{{- end }}

{{/* More environment of Django processes. */}}
{{- define "caret.djangoEnvironment" -}}
{{ include "caret.environment" . }}
- {name: DATABASE_URL_FILE, value: /run/caret/secrets/database-url}
- {name: CARET_HTTPS, value: "True"}
- {name: CARET_ALLOWED_HOSTS, value: {{ .Values.console.host | quote }}}
- {name: CARET_CSRF_TRUSTED_ORIGINS, value: "https://{{ .Values.console.host }}"}
- {name: CARET_CONSOLE_URL, value: "https://{{ .Values.console.host }}"}
- {name: CARET_GATEWAY_URL, value: "https://{{ .Values.gateway.host }}"}
- {name: CARET_GATEWAY_METRICS_URLS, value: {{ include "caret.gatewayMetrics" . | quote }}}
- {name: CARET_CONTENT_STORAGE, value: {{ .Values.stores.content | quote }}}
- {name: CARET_EXPORT_STORAGE, value: {{ .Values.stores.exports | quote }}}
- {name: CARET_TOMBSTONE_STORAGE, value: {{ .Values.stores.destroyedKeys | quote }}}
{{- range $setting, $key := .Values.secrets.optional }}
- {name: {{ $setting }}_FILE, value: /run/caret/secrets/{{ $key }}}
{{- end }}
{{- include "caret.settings" .Values.settings }}
{{- end }}

{{/* Metrics port of the console and beat. network.yaml allows access. */}}
{{- define "caret.metricsPort" -}}
- {name: CARET_METRICS_HOST, value: 0.0.0.0}
- {name: CARET_CONTROL_PLANE_METRICS_PORT, value: "8403"}
{{- end }}

{{- define "caret.settings" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{/* Addresses of all possible gateways, for the operator pages. */}}
{{- define "caret.gatewayMetrics" -}}
{{- $root := . -}}
{{- $addresses := list -}}
{{- range $number := until (int (include "caret.numGateways" .)) -}}
{{- $addresses = append $addresses (printf "http://%s-gateway-%d.%s-gateway-pods:8403" $root.Release.Name $number $root.Release.Name) -}}
{{- end -}}
{{- join "," $addresses -}}
{{- end }}

{{- define "caret.numGateways" -}}
{{- eq .Values.autoscaling.kind "none" | ternary .Values.gateway.replicas .Values.gateway.maxReplicas -}}
{{- end }}

{{/* A volume with only those keys of the Secret that a process needs. {root, keys} */}}
{{- define "caret.secretsVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .root.Values.secrets.application }}
          items:
          {{- range .keys }}
            - {key: {{ . }}, path: {{ . }}}
          {{- end }}
{{- end }}

{{- define "caret.djangoSecrets" -}}
{{- $keys := concat (list "root-secret" "database-url" "redis-url") (values .Values.secrets.optional | sortAlpha) | uniq -}}
{{ include "caret.secretsVolume" (dict "root" . "keys" $keys) }}
{{- end }}

{{/* Writable volumes, because the root file system is read-only. */}}
{{- define "caret.writable" -}}
- {name: home, emptyDir: {sizeLimit: 1Gi}}
- {name: tmp, emptyDir: {sizeLimit: 1Gi}}
{{- end }}

{{- define "caret.writableMounts" -}}
- {name: home, mountPath: /var/lib/caret}
- {name: tmp, mountPath: /tmp}
- {name: secrets, mountPath: /run/caret/secrets, readOnly: true}
{{- end }}
