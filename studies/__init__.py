"""Studies behind the documentation; `studies/README.md` lists them. No part of the package."""
