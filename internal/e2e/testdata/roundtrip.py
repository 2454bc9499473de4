"""One task from mail to result with Python's smtplib and imaplib.

usage: roundtrip.py IMAP_PORT SMTP_PORT PASSWORD
Prints the text of the result.
"""
import email
import email.policy
import imaplib
import smtplib
import sys
import time
from email.message import EmailMessage

imap_port, smtp_port, password = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
imaplib._MAXLINE = 10_000_000


def submit(message):
    with smtplib.SMTP("127.0.0.1", smtp_port, timeout=20) as smtp:
        smtp.login("me", password)
        refused = smtp.send_message(message)
        assert not refused, refused


def await_kind(box, folder, kind, after=0):
    """Wait for an unseen message of this kind; return (uid, message)."""
    deadline = time.time() + 30
    while time.time() < deadline:
        box.select(folder)
        found = box.uid("SEARCH", None, "UNSEEN", "HEADER", "X-Pizza-Kind", kind)[1][0].split()
        if found:
            data = box.uid("FETCH", found[-1], "(BODY.PEEK[])")[1]
            return found[-1].decode(), email.message_from_bytes(data[0][1], policy=email.policy.default)
        time.sleep(0.05)
    raise SystemExit(f"no {kind} in {folder}")


task = EmailMessage()
task["From"], task["To"], task["Subject"] = "me@localhost", "pizza@localhost", "Grüße from Python"
task["Message-ID"] = "<roundtrip-1@python.example>"
task.set_content('call read_file {"path":"/in/größe.txt"}\n'
                 'call write_file {"path":"/local/orders/python.txt","content":"from python"}\nsay fertig\n')
task.add_attachment("dreißig\n".encode(), maintype="text", subtype="plain", filename="größe.txt")
submit(task)

box = imaplib.IMAP4("127.0.0.1", imap_port)
box.starttls(__import__("ssl")._create_unverified_context())
box.login("me", password)
uid, asked = await_kind(box, "Action", "approval")
assert "python.txt" in asked.get_body(("plain",)).get_content(), asked
assert asked["References"].split()[0] == task["Message-ID"], asked["References"]

reply = EmailMessage()
reply["From"], reply["To"], reply["Subject"] = "me@localhost", asked["Reply-To"], "Re: " + asked["Subject"]
reply["In-Reply-To"], reply["References"] = asked["Message-ID"], asked["References"] + " " + asked["Message-ID"]
quoted = "\n".join("> " + line for line in asked.get_body(("plain",)).get_content().splitlines())
reply.set_content("approve\n\nOn Tuesday, Pizza wrote:\n" + quoted + "\n")
submit(reply)

uid, result = await_kind(box, "INBOX", "result")
text = result.get_body(("plain",)).get_content()
assert "fertig" in text and "dreißig" in text, text
assert task["Message-ID"] in result["References"], result["References"]
assert result.get_body(("html",)) is not None, "no HTML part"
flags = imaplib.ParseFlags(box.uid("FETCH", uid, "(FLAGS)")[1][0])
assert b"\\Seen" not in flags, flags
box.select("Action")
assert box.uid("SEARCH", None, "ALL")[1][0] == b"", "the decided approval is still in Action"
print(text)
