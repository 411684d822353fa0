// The log-in form: one form for "I have a code" and "send me one".

import { api } from "./api.js";
import { byId, say } from "./dom.js";

export class LoginView {
  #account = byId("account");
  #code = byId("code");
  #error = byId("login-error");
  #status = byId("login-status");
  #onLoggedIn;

  /** `onLoggedIn()` once the session's cookie is set. */
  constructor({ onLoggedIn }) {
    this.#onLoggedIn = onLoggedIn;
    byId("login-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#tell("", "");
      this.#logIn();
    });
    byId("send-code").addEventListener("click", () => this.#sendCode());
  }

  show(message = "") {
    byId("login").hidden = false;
    document.title = "HOOP · log in";
    this.#code.value = "";
    this.#tell(message, "");
    (this.#account.value ? this.#code : this.#account).focus();
  }

  hide() {
    byId("login").hidden = true;
  }

  async #logIn() {
    const code = this.#code.value.trim();
    if (!code) {
      this.#tell("", "Paste the code you were given, or have one sent.");
      this.#code.focus();
      return;
    }
    try {
      await api.logIn(this.#account.value.trim(), code);
    } catch (error) {
      this.#tell("", error.message);
      this.#code.select();
      this.#code.focus();
      return;
    }
    this.#code.value = "";
    this.#onLoggedIn();
  }

  async #sendCode() {
    if (!this.#account.reportValidity()) return;
    try {
      await api.requestCode(this.#account.value.trim());
      this.#tell("If this account exists, a code is on its way. It is good for 5 minutes.", "");
      this.#code.focus();
    } catch (error) {
      this.#tell("", error.message);
    }
  }

  #tell(status, error) {
    say(this.#status, status);
    say(this.#error, error);
  }
}
