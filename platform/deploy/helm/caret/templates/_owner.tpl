{{/* Pods that run as the tables' owner. Only these get the owner's database URL.
     {root, component, steps}: the steps are commands of manage.py, which run one after the other. */}}
{{- define "caret.ownerPod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "caret.labels" . | nindent 4 }}
spec:
  {{- include "caret.podSecurity" $root | nindent 2 }}
  restartPolicy: Never
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $last := last .steps }}
  {{- with initial .steps }}
  initContainers:
    {{- range . }}
    {{- include "caret.ownerStep" (dict "root" $root "step" .) | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    {{- include "caret.ownerStep" (dict "root" $root "step" $last) | nindent 4 }}
  volumes:
    {{- include "caret.writable" $root | nindent 4 }}
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          - secret:
              name: {{ $root.Values.secrets.application }}
              items:
                - {key: root-secret, path: root-secret}
                - {key: database-url, path: database-url}
                - {key: redis-url, path: redis-url}
          - secret:
              name: {{ $root.Values.secrets.owner }}
              items: [{key: owner-database-url, path: owner-database-url}]
{{- end }}

{{- define "caret.ownerStep" -}}
- name: {{ .step.name }}
  image: {{ include "caret.image" (dict "root" .root "image" .root.Values.image) }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{ prepend .step.arguments "manage.py" | toJson }}
  env:
    {{- include "caret.environment" .root | nindent 4 }}
    - {name: DATABASE_URL_FILE, value: /run/caret/secrets/database-url}
    - {name: CARET_OWNER_DATABASE_URL_FILE, value: /run/caret/secrets/owner-database-url}
  resources:
    {{- toYaml .root.Values.migrations.resources | nindent 4 }}
  {{- include "caret.containerSecurity" .root | nindent 2 }}
  volumeMounts:
    {{- include "caret.writableMounts" .root | nindent 4 }}
{{- end }}
