"""The referee: tshark's reading of a capture of the link."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import repository
import roots
import say

# A form of message, and the display filter that finds it.
FORMS = {
    "an inline call or reply": "rpcordma.msg_type == 0 && !rpcordma.reads_count && !rpcordma.writes_count",
    "a Read chunk": "rpcordma.msg_type == 0 && rpcordma.reads_count > 0",
    "a Position Zero Read chunk": "rpcordma.msg_type == 1 && rpcordma.reads_count > 0",
    "a Write chunk": "rpcordma.writes_count > 0",
    "a Reply chunk": "rpcordma.reply_count > 0",
}
