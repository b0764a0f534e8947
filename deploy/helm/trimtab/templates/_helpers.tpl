{{- define "trimtab.fullname" -}}
{{- if contains "trimtab" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-trimtab" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "trimtab.selector" -}}
app.kubernetes.io/name: trimtab
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "trimtab.labels" -}}
{{ include "trimtab.selector" . }}
app.kubernetes.io/part-of: trimtab
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "trimtab.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "trimtab.fullname" .) -}}
{{- end -}}

{{- define "trimtab.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "trimtab.settings" -}}
trimtab.toml: |
{{ .Values.settings.trimtab | default (.Files.Get "files/trimtab.toml") | indent 2 }}
broker.conf: |
{{ .Values.settings.broker | default (.Files.Get "files/broker.conf") | indent 2 }}
{{- end -}}

{{- define "trimtab.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}

{{- /* A process: dict of root, component, values, args (list), and optionally https and state (booleans). */ -}}
{{- define "trimtab.deployment" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "trimtab.fullname" $root) .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "trimtab.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels: &labels
      {{- include "trimtab.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  # One after the other: an upgrade waits until the new process does its part (/readyz).
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 0
      maxUnavailable: 1
  minReadySeconds: 5
  template:
    metadata:
      labels:
        {{- include "trimtab.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
        app.kubernetes.io/part-of: trimtab
      annotations:
        # Changed settings restart the processes, one after the other.
        checksum/settings: {{ include "trimtab.settings" $root | sha256sum }}
        {{- with .values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "trimtab.serviceAccount" $root }}
      # Only the election by a Lease calls the API.
      automountServiceAccountToken: {{ and $root.Values.lease.enabled (has .component (list "controller" "page")) }}
      enableServiceLinks: false
      # trimtab ends within three seconds after SIGTERM.
      terminationGracePeriodSeconds: 15
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile:
          type: RuntimeDefault
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: *labels
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "trimtab.image" $root | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: {{ toJson .args }}
          # Exit codes 2 and 77 need a person: `kubectl describe pod` then shows the last line of the log.
          terminationMessagePolicy: FallbackToLogsOnError
          ports:
            - name: metrics
              containerPort: 9640
            {{- if .https }}
            - name: https
              containerPort: 9680
            {{- end }}
          {{- include "trimtab.probes" $root | nindent 10 }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - {name: settings, mountPath: /etc/trimtab/conf, readOnly: true}
            - {name: secrets, mountPath: /etc/trimtab/secrets, readOnly: true}
            - {name: tmp, mountPath: /tmp}
            {{- if .state }}
            - {name: state, mountPath: /var/lib/trimtab}
            {{- end }}
      volumes:
        - name: settings
          configMap:
            name: {{ include "trimtab.fullname" $root }}-settings
        - name: secrets
          secret:
            secretName: {{ .values.secretName | default $name }}
            # 0440 in decimal: some tools read YAML 1.2, where 0440 is four hundred and forty.
            defaultMode: 288
        - name: tmp
          emptyDir:
            sizeLimit: {{ .values.temporarySize }}
        {{- if .state }}
        - name: state
          persistentVolumeClaim:
            claimName: {{ $root.Values.state.existingClaim | default (printf "%s-state" (include "trimtab.fullname" $root)) }}
        {{- end }}
{{- end -}}

{{- define "trimtab.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "trimtab.fullname" .root }}-{{ .component }}
  labels:
    {{- include "trimtab.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "trimtab.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
{{- end -}}
