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
editFormat: ""
promptTokens: 0
hasTokenHealing: true
kvEvents: false
speculation: {}
plainReplicas: 0
kvTier: {}
kvPeers: []
quantization: ""
maxNumSeqs: 0
args: []
nodeSelector: {}
tolerations: []
{{- end }}

{{/* A pool's values, completed with the defaults, as YAML for fromYaml. {root, name} */}}
{{- define "caret.pool" -}}
{{- $given := index .root.Values.pools .name -}}
{{- $pool := mergeOverwrite (include "caret.poolDefaults" . | fromYaml) $given -}}
{{- $_ := set $pool "servedName" (base $pool.model) -}}
{{- $_ := set $pool "maxReplicas" (int ($pool.maxReplicas | default $pool.replicas)) -}}
{{- $isScaled := and (eq .root.Values.autoscaling.kind "keda") (gt $pool.maxReplicas (int $pool.replicas)) -}}
{{- $_ := set $pool "isScaled" $isScaled -}}
{{ toYaml $pool }}
{{- end }}

{{/*
The StatefulSets of engines: one for each pool, and a further one for its replicas without speculation.
{"groups": [{name, pool}]} as YAML.
*/}}
{{- define "caret.engineGroups" -}}
{{- $groups := list -}}
{{- range $name := keys .Values.pools | sortAlpha -}}
{{- $pool := include "caret.pool" (dict "root" $ "name" $name) | fromYaml -}}
{{- $groups = append $groups (dict "name" $name "pool" $pool) -}}
{{- with int $pool.plainReplicas -}}
{{- $plain := merge (dict "replicas" . "maxReplicas" . "isScaled" false "speculation" (dict "method" "none")) (omit $pool "speculation") -}}
{{- $groups = append $groups (dict "name" (printf "%s-plain" $name) "pool" $plain) -}}
{{- end -}}
{{- end -}}
{{ dict "groups" $groups | toYaml }}
{{- end }}

{{/*
The flags of a pool's profile, as JSON {"flags": [...]}: engine-profiles.json has the reasons. Values
of the pool replace those of the profile. {root, pool}
*/}}
{{- define "caret.profile" -}}
{{- $pool := .pool -}}
{{- $own := dict "--quantization" $pool.quantization "--speculative-config" $pool.speculation "--max-num-seqs" $pool.maxNumSeqs -}}
{{- $flags := list -}}
{{- range (.root.Files.Get "engine-profiles.json" | fromJson).flags -}}
{{- $isOfPool := and (eq (.profile | default $pool.tier) $pool.tier) (eq (.hardware | default "gpu") "gpu") -}}
{{- if and $isOfPool (not (index $own .flag)) -}}
{{- $flags = append $flags . -}}
{{- end -}}
{{- end -}}
{{ dict "flags" $flags | toJson }}
{{- end }}

{{/* The arguments of a pool's engines, as a YAML list. {root, pool} */}}
{{- define "caret.engineArguments" -}}
{{- $pool := .pool -}}
- --model={{ $pool.model }}
- --served-model-name={{ $pool.servedName }}
- --host=0.0.0.0
- --port=8000
- --max-model-len={{ int $pool.maxContextTokens }}
- --tensor-parallel-size={{ int $pool.gpus }}
- --shutdown-timeout={{ int .root.Values.engine.shutdownTimeoutS }}
{{- range (include "caret.profile" . | fromJson).flags }}
- {{ ternary (printf "%s=%s" .flag .value) .flag (hasKey . "value") | squote }}
{{- end }}
{{- with $pool.maxNumSeqs }}
- --max-num-seqs={{ int . }}
{{- end }}
{{- if not (has $pool.quantization (list "" "none")) }}
- --quantization={{ $pool.quantization }}
{{- end }}
{{- if $pool.kvEvents }}
- --kv-events-config
- '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558"}'
{{- end }}
{{- if not (has $pool.speculation.method (list nil "none")) }}
- --speculative-config
- {{ include "caret.speculation" $pool.speculation | squote }}
{{- end }}
{{- with $pool.kvTier }}
- --kv-transfer-config
- {{ dict "kv_connector" .connector "kv_role" "kv_both" "kv_connector_extra_config" (.config | default dict) | toJson | squote }}
{{- end }}
{{- range $pool.args }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The value of --speculative-config. Suffix decoding would cache completions of all tenants in one
     tree, so its cache is switched off. */}}
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

{{/* The gateways' pools file. inference/pools/pool_config.py explains each line. */}}
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
{{- with $pool.editFormat }}
edit_format = {{ . | quote }}
{{- end }}
{{- with int $pool.promptTokens }}
prompt_tokens = {{ . }}
{{- end }}
has_token_healing = {{ $pool.hasTokenHealing }}
tenants = {{ $pool.tenants | toJson }}
{{- if eq $pool.source "kubernetes" }}
discover = {{ include "caret.replica" (dict "root" $root "pool" $pool "host" (printf "%s-engine-%s.%s" $root.Release.Name $name $root.Release.Namespace)) }}
source = "kubernetes"
{{- else }}
replicas = [
{{- range $number := until (int $pool.maxReplicas) }}
  {{ include "caret.replica" (dict "root" $root "pool" $pool "host" (printf "%s-engine-%s-%d.%s-engine-%s" $root.Release.Name $name $number $root.Release.Name $name)) }},
{{- end }}
{{- range $number := until (int $pool.plainReplicas) }}
  {{ include "caret.replica" (dict "root" $root "pool" (set (omit $pool "speculation") "speculation" (dict "method" "none")) "host" (printf "%s-engine-%s-plain-%d.%s-engine-%s-plain" $root.Release.Name $name $number $root.Release.Name $name)) }},
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
{{- $method := .pool.speculation.method -}}
{{- $maxNumSeqs := .pool.maxNumSeqs -}}
{{- range (include "caret.profile" . | fromJson).flags -}}
{{- if eq .flag "--speculative-config" -}}
{{- $method = (fromJson .value).method -}}
{{- else if eq .flag "--max-num-seqs" -}}
{{- $maxNumSeqs = .value -}}
{{- end -}}
{{- end -}}
{{- if not (has $method (list nil "none")) -}}
{{- $entries = append $entries (printf "speculation = %q" $method) -}}
{{- end -}}
{{- if eq ($method | default "") "suffix" -}}
{{- $entries = append $entries "suffix_decoding_max_cached_requests = 0" -}}
{{- end -}}
{{- $entries = append $entries (printf "max_num_seqs = %d" (int $maxNumSeqs)) -}}
{{- with .pool.kvTier -}}
{{- $entries = append $entries (printf "kv_connector = %q" .connector) -}}
{{- end -}}
{ {{ join ", " $entries }} }
{{- end }}
