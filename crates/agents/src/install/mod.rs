//! Which settings make an agent call us, and how they are edited without touching anything else.
