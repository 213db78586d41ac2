;;; caret.el --- Suggestions from your own Caret gateway  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (lsp-mode "10.0.0"))
;; Keywords: convenience, languages
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Install with M-x package-install-file, then add (require 'caret) to your init file.
;; Suggestions appear while `lsp-inline-completion-mode' is on.  C-RET accepts one.
;; Sign in with M-x caret-sign-in.

;;; Code:

(require 'lsp-mode)
(require 'lsp-inline-completion)

(defgroup caret nil
  "Suggestions from a Caret gateway."
  :group 'lsp-mode
  :prefix "caret-")

(defcustom caret-command '("caret-ls")
  "Command of the language server."
  :type '(repeat string))

(defcustom caret-modes '(prog-mode conf-mode text-mode)
  "Major modes, and their parents, in which Caret suggests."
  :type '(repeat symbol))

(defcustom caret-idle-delay 0.1
  "Seconds without a key before a suggestion is requested."
  :type 'number)

;;;###autoload
(defun caret-sign-in ()
  "Sign in: the console opens, where you confirm a code."
  (interactive)
  (lsp-request "workspace/executeCommand" '(:command "caret.startSignIn" :arguments [])))

(defun caret--activate-p (_file _mode)
  "Return whether Caret suggests in this buffer."
  (apply #'derived-mode-p caret-modes))

(setq lsp-inline-completion-idle-delay caret-idle-delay)
(lsp-register-client
 (make-lsp-client
  :new-connection (lsp-stdio-connection (lambda () caret-command))
  :activation-fn #'caret--activate-p
  :add-on? t
  ;; lsp-mode announces inline completion as null; without this, it would get completion lists, too.
  :initialization-options '(:completion_list :json-false)
  :server-id 'caret))

(provide 'caret)
;;; caret.el ends here
