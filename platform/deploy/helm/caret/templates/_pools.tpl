{{/* Engines: a pool's values with defaults, its arguments, and the gateways' pools file. */}}

{{- define "caret.poolDefaults" -}}
gpus: 1
gpuResource: nvidia.com/gpu
resources: {requests: {cpu: "4", memory: 32Gi}, limits: {memory: 64Gi}}
sharedMemory: 8Gi
source: names
tenants: []
layout: ""
family: ""
healsWords: true
kvEvents: false
speculation: {}
kvTier: {}
kvPeers: []
quantization: ""
args: []
nodeSelector: {}
tolerations: []
{{- end }}

{{/* {root, name}; YAML for fromYaml. */}}
{{- define "caret.pool" -}}
{{- $given := index .root.Values.pools .name -}}
{{- $pool := mergeOverwrite (include "caret.poolDefaults" . | fromYaml) $given -}}
{{- $_ := set $pool "servedName" (base $pool.model) -}}
{{- $_ := set $pool "maxReplicas" (int ($pool.maxReplicas | default $pool.replicas)) -}}
{{- $isScaled := and (eq .root.Values.autoscaling.kind "keda") (gt $pool.maxReplicas (int $pool.replicas)) -}}
{{- $_ := set $pool "isScaled" $isScaled -}}
{{ toYaml $pool }}
{{- end }}

{{/* Flags, with reasons in ADR 0012. {root, pool} */}}
{{- define "caret.engineArguments" -}}
{{- $pool := .pool -}}
- --model={{ $pool.model }}
- --served-model-name={{ $pool.servedName }}
- --host=0.0.0.0
- --port=8000
- --max-model-len={{ int $pool.maxContextTokens }}
- --tensor-parallel-size={{ int $pool.gpus }}
- --block-size=16
- --enable-prefix-caching
- --enable-prompt-tokens-details
- --scheduling-policy=priority
- --max-num-batched-tokens=512
- --long-prefill-token-threshold=128
- --max-num-queued-reqs=256
- --max-num-queued-tokens=262144
- --no-enable-log-requests
- --disable-uvicorn-access-log
- --generation-config=vllm
- --shutdown-timeout={{ int .root.Values.engine.shutdownTimeoutS }}
{{- with $pool.quantization }}
- --quantization={{ . }}
{{- end }}
{{- if $pool.kvEvents }}
- --kv-events-config
- '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558"}'
{{- end }}
{{- with $pool.speculation }}
- --speculative-config
- {{ include "caret.speculation" . | squote }}
{{- end }}
{{- with $pool.kvTier }}
- --kv-transfer-config
- {{ dict "kv_connector" .connector "kv_role" "kv_both" "kv_connector_extra_config" (.config | default dict) | toJson | squote }}
{{- end }}
{{- range $pool.args }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Suffix decoding caches completions of all tenants in one tree, so the cache must be empty. */}}
{{- define "caret.speculation" -}}
{{- $config := dict "num_speculative_tokens" (int .tokens) -}}
{{- if eq .method "ngram" -}}
{{- $_ := merge $config (dict "method" "ngram" "prompt_lookup_max" 4) -}}
{{- else if eq .method "suffix" -}}
{{- $_ := merge $config (dict "method" "suffix" "suffix_decoding_max_cached_requests" 0) -}}
{{- else -}}
{{- $_ := merge $config (dict "method" "draft_model" "model" .draftModel) -}}
{{- end -}}
{{ toJson $config }}
{{- end }}

{{/* inference/pools/pool_config.py explains each line. */}}
{{- define "caret.catalog" -}}
{{- $root := . -}}
{{- range $name := keys .Values.pools | sortAlpha }}
{{- $pool := include "caret.pool" (dict "root" $root "name" $name) | fromYaml }}
[[pools]]
name = {{ $name | quote }}
tier = {{ $pool.tier | quote }}
model = {{ $pool.servedName | quote }}
tokenizer = {{ $pool.model | quote }}
max_context_tokens = {{ int $pool.maxContextTokens }}
{{- with $pool.layout }}
layout = {{ . | quote }}
{{- end }}
{{- with $pool.family }}
family = {{ . | quote }}
{{- end }}
heals_words = {{ $pool.healsWords }}
tenants = {{ $pool.tenants | toJson }}
{{- if eq $pool.source "kubernetes" }}
discover = {{ include "caret.replica" (dict "root" $root "pool" $pool "host" (printf "%s-engine-%s.%s" $root.Release.Name $name $root.Release.Namespace)) }}
source = "kubernetes"
{{- else }}
replicas = [
{{- range $number := until (int $pool.maxReplicas) }}
  {{ include "caret.replica" (dict "root" $root "pool" $pool "host" (printf "%s-engine-%s-%d.%s-engine-%s" $root.Release.Name $name $number $root.Release.Name $name)) }},
{{- end }}
]
{{- end }}
{{ end }}
{{- end }}

{{/* Whether a pool's endpoints come from the Kubernetes API: "true" or empty. */}}
{{- define "caret.watchesEndpoints" -}}
{{- range .Values.pools -}}
{{- if eq (.source | default "names") "kubernetes" -}}true{{- end -}}
{{- end -}}
{{- end }}

{{- define "caret.replica" -}}
{{- $entries := list (printf "url = %q" (printf "http://%s:8000" .host)) -}}
{{- if .pool.kvEvents -}}
{{- $entries = append $entries (printf "kv_events = %q" (printf "tcp://%s:5557" .host)) -}}
{{- $entries = append $entries (printf "kv_replay = %q" (printf "tcp://%s:5558" .host)) -}}
{{- end -}}
{{- with .pool.speculation -}}
{{- $entries = append $entries (printf "speculation = %q" .method) -}}
{{- if eq .method "suffix" -}}
{{- $entries = append $entries "suffix_decoding_max_cached_requests = 0" -}}
{{- end -}}
{{- end -}}
{{- with .pool.kvTier -}}
{{- $entries = append $entries (printf "kv_connector = %q" .connector) -}}
{{- end -}}
{ {{ join ", " $entries }} }
{{- end }}
